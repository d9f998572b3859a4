"""``fit`` and ``score`` with what their trainer has a use for: queries, weights, bags.

scikit-learn makes its metadata requests from the signatures, so that each combination is a class.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from apsvm._support.types import Matrix
from apsvm.data.bags import deciding_rows
from apsvm.data.pooling import pooled_rows
from apsvm.estimators.bags import bags_in
from apsvm.estimators.base import LinearEstimator, validated


class ByQuery(LinearEstimator):
    """Rows of one query are one ranking."""

    #: Requested by default: there is one thing that a column of query ids can mean.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    def fit(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X : Matrix
            (n, d) numbers: an array, a scipy.sparse matrix (CSR is used in place); or a data frame, whose words, dates
            and missing cells become features as those of a table do on the command line.
        y : ArrayLike
            (n,) see the class.
        qid : ArrayLike, optional
            (n,) the query of each row, of any type that can be sorted, in any order: only rows of one query
            are compared; None: one query.

        Raises
        ------
        ValueError
            Input that does not fit, parameters that do not go together, nothing to rank.
        NotFiniteError
            (a ValueError) feature values, or a learning rate, too large for the objective to be finite.
        """
        return self._fit(X, y, qid)

    def score(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """The metric trained for, the mean over the queries that have something to rank; arguments as in ``fit``.

        Raises
        ------
        ValueError
            The metric is undefined for these rows; or the fit knew queries and ``qid`` is None.
        """
        return self._score(X, y, qid)


class Weighted(LinearEstimator):
    """Rows of one query are one ranking, and queries or rows have weights."""

    #: Requested by default: weights given to a search are meant for its fits and scores.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}

    def fit(
        self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : Matrix
            (n, d) numbers: an array, a scipy.sparse matrix (CSR is used in place); or a data frame, whose words, dates
            and missing cells become features as those of a table do on the command line.
        y : ArrayLike
            (n,) see the class.
        qid : ArrayLike, optional
            (n,) the query of each row, of any type that can be sorted, in any order; None: one query.
        sample_weight : ArrayLike, optional
            (n,) see the class.

        Raises
        ------
        ValueError
            Input that does not fit, parameters that do not go together, nothing to rank.
        NotFiniteError
            (a ValueError) feature values too large for the objective to be finite.
        """
        return self._fit(X, y, qid, sample_weight)

    def score(
        self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """The metric trained for: AP for loss "ap", NDCG for "ndcg" (of the same gains), accuracy for "zero-one" …; a
        loss without a metric: 1 − Δ. The mean over the queries that have something to rank, arguments as in ``fit``.

        Raises
        ------
        ValueError
            The metric is undefined for these rows; or the fit knew queries and ``qid`` is None.
        """
        return self._score(X, y, qid, sample_weight)


class WeightedBags(LinearEstimator):
    """Rows of one query are one ranking, queries or rows have weights, and rows may be those of bags."""

    #: Requested by default: weights given to a search are meant for its fits and scores.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True, "bags": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True, "bags": True}

    def fit(
        self,
        X: Matrix,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        bags: ArrayLike | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : Matrix
            (n, d) numbers: an array, a scipy.sparse matrix (CSR is used in place); or a data frame, whose words, dates
            and missing cells become features as those of a table do on the command line.
        y : ArrayLike
            (n,) see the class.
        qid : ArrayLike, optional
            (n,) the query of each row, of any type that can be sorted, in any order; None: one query.
        sample_weight : ArrayLike, optional
            (n,) see the class.
        bags : ArrayLike, optional
            (n,) the bag of each row, of any type that can be sorted, in any order, for ``pool``; rows of a
            bag share y, qid and sample_weight.

        Raises
        ------
        ValueError
            Input that does not fit, parameters that do not go together, nothing to rank.
        NotFiniteError
            (a ValueError) feature values too large for the objective to be finite.
        """
        return self._fit(X, y, qid, sample_weight, bags)

    def score(
        self,
        X: Matrix,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        bags: ArrayLike | None = None,
    ) -> float:
        """The metric trained for: AP for loss "ap", NDCG for "ndcg" (of the same gains), accuracy for "zero-one" …; a
        loss without a metric: 1 − Δ. The mean over the queries that have something to rank, arguments as in ``fit``.

        Raises
        ------
        ValueError
            The metric is undefined for these rows; or the fit knew queries and ``qid`` is None.
        """
        return self._score(X, y, qid, sample_weight, bags)

    def bag_scores(self, X: Matrix, bags: ArrayLike) -> NDArray[np.float64]:
        """The score of each bag, as ``decision_function`` has those of rows: (n_bags,) float64.

        Parameters
        ----------
        X : Matrix
            (n, n_features_in_).
        bags : ArrayLike
            (n,) the bag of each row, in any order.

        Returns
        -------
        array
            In the order in which the bags first appear; without ``pool`` a bag's score is that of its best row

        Raises
        ------
        ValueError
            X or bags do not fit.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        by_bag, pool = bags_in(bags, X.shape[0]), self._header.features.pool
        if self._header.latent:
            return self._as_decided(by_bag.best(self._scores_of_pooled(X)))
        if pool is None:
            return by_bag.best(self.decision_function(X))
        return self._as_decided(self._scores_of_pooled(pooled_rows(X, by_bag, pool)))

    def deciding_rows(self, X: Matrix, bags: ArrayLike) -> NDArray[np.int64]:
        """The row of X that each bag stands at, the one of the highest score of relevance, of equal ones the first:
        (n_bags,) int64, in the order in which the bags first appear. Parameters and errors: see ``bag_scores``."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        if self._header.features.pool is not None:
            raise ValueError(f"{type(self).__name__} pools the rows of a bag: none of them decides alone")
        return deciding_rows(bags_in(bags, X.shape[0]), self._scores_of_pooled(X))
