// The losses of a pair of rows that the fast sums know.
#pragma once

namespace apsvm {

// What a pair costs: ℓ(t) of t = f_l − f_k, by how much row l, the preferred, is ahead of row k. −ℓ' falls from 1 to 0.
struct PairKernel {
    double (*slope)(double t, double c);  // −ℓ'
    double (*loss)(double t, double c);   // ℓ: −t far below 0, 0 far above
    double c;
    double width;  // of a cell: a power of two, so that a score's place in its cell is exact
    double reach;  // beyond it both are at their limits, to rounding

    double slope_at(double t) const { return slope(t, c); }
    double loss_at(double t) const { return loss(t, c); }
};

// ℓ = log(1 + e^{−t}).
extern const PairKernel kLogistic;
// −ℓ' = erfc(ct)/2 with the slides' c = √3/(√2 π), which ties it to the logistic's; ℓ = ierfc(ct)/(2c).
extern const PairKernel kErfc;

}  // namespace apsvm
