"""What a run tells of itself: one page, ``apsvm report``."""
