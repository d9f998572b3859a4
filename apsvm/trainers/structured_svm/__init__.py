"""The structured SVM: minimise ½‖w‖² + C·risk(w) by cutting planes, certified (``--loss ap`` and its kin)."""
