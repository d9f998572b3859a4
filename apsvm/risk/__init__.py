"""Risks, which are minimised together with ½‖w‖²: functions of the scores with value, slopes and a lower bound."""

from apsvm.oracles.layout import NothingToRankError, require_pairs
from apsvm.risk.bags import BagMaxima, BagRisk, make_bag_risk
from apsvm.risk.by_order import loss_by_order
from apsvm.risk.layers import LayerRisk, make_risk_of_scores
from apsvm.risk.ramp import Ramp
from apsvm.risk.rankings import Account, CuttingPlane, NoLoss, OracleCall, Risk, bind_risk

__all__ = [
    "Account",
    "BagMaxima",
    "BagRisk",
    "CuttingPlane",
    "LayerRisk",
    "NoLoss",
    "NothingToRankError",
    "OracleCall",
    "Ramp",
    "Risk",
    "bind_risk",
    "loss_by_order",
    "make_bag_risk",
    "make_risk_of_scores",
    "require_pairs",
]
