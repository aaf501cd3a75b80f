// QR with column pivoting on the host (pivoted_qr_law.hpp).

#include "pivoted_qr_law.hpp"

namespace quoin::test {

template <>
class WithContext<Host> : public testing::Test {
protected:
    Context<Host>& context() { return two_; }
    Context<Host>& other_context() { return one_; }

private:
    Context<Host> one_{1}, two_{2};
};

using OnHost = testing::Types<Place<float, Host>, Place<double, Host>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, PivotedQR, OnHost);

}  // namespace quoin::test
