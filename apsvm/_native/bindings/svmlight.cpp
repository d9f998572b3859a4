// The svmlight parser: bytes in, arrays out.
#include "module.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "svmlight/parser.hpp"
#include "svmlight/text.hpp"
#include "arrays.hpp"
#include "buffers.hpp"
#include "turn.hpp"

namespace {

using namespace apsvm;
using svmlight::Buffer;
using svmlight::Options;
using svmlight::Rows;
using svmlight::SyntaxError;

// Gives the buffer's memory to a numpy array.
template <class T>
nb::object to_array(Buffer &buffer) {
    const std::size_t n = buffer.size<T>();
    T *memory = nullptr;
    const nb::capsule owner = owner_of(buffer, memory);
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(memory, {n}, owner));
}

template <class T>
nb::object to_array_or_none(Buffer &buffer) {
    return buffer.bytes() == 0 ? nb::none() : to_array<T>(buffer);
}

// The row ends behind a leading 0, in the type of the indices: scipy wants both of one type.
template <class Index>
Buffer to_indptr(const Buffer &row_ends) {
    const std::size_t n = row_ends.size<std::int64_t>();
    Buffer indptr;
    indptr.reserve_more<Index>(n + 1);
    indptr.set_size<Index>(n + 1);
    Index *const out = indptr.as<Index>();
    out[0] = 0;
    std::copy_n(row_ends.as<std::int64_t>(), n, out + 1);
    return indptr;
}

PyObject *syntax_error_type = nullptr;

// Runs `work` without the GIL; a SyntaxError becomes the Python exception with args (line, column, message).
template <class Work>
void run_unlocked(Work work) {
    std::optional<SyntaxError> error;
    {
        nb::gil_scoped_release unlocked;
        try {
            work();
        } catch (SyntaxError &caught) {
            error = std::move(caught);
        }
    }
    if (error) {
        const nb::tuple arguments = nb::make_tuple(error->line, error->column, nb::str(error->message.c_str()));
        PyErr_SetObject(syntax_error_type, arguments.ptr());
        throw nb::python_error();
    }
}

// The parser, and the block that it may still be reading.
class SvmlightParser {
public:
    SvmlightParser(const Options &options, std::size_t threads, std::size_t least_chunk)
        : parser_(options, threads, least_chunk) {}

    void wait() {
        const Turn turn(mutex_);
        run_unlocked([&] { parser_.wait(); });
    }

    void feed(const nb::bytes &block) {
        const Turn turn(mutex_);
        run_unlocked([&] { parser_.wait(); });
        const auto *const begin = static_cast<const char *>(block.data());
        const auto *const end = begin + block.size();
        if (parser_.is_worth_threads(block.size())) {
            block_ = block;
            return parser_.start(begin, end);
        }
        run_unlocked([&] { parser_.feed(begin, end); });
    }

    nb::tuple take(bool dense) {
        return arrays([&] { return parser_.take(); }, dense);
    }

    nb::tuple finish(bool dense) {
        return arrays([&] { return parser_.finish(); }, dense);
    }

private:
    // Full rows stay so where that was requested and, where they lack entries, they have all columns and it takes hardly
    // more bytes.
    template <class Value>
    void give_shape(Rows &rows, bool dense) const {
        const Options &options = parser_.options();
        const bool all_columns = options.n_features < 0 || options.n_features == rows.n_columns;
        if (dense && (rows.absent == 0 || (all_columns && rows.is_dense<Value>(options))))
            rows.zero_absent<Value>();
        else
            rows.store_indices<Value>();
    }

    template <class Give>
    nb::tuple arrays(Give give, bool dense) {
        const Turn turn(mutex_);
        Rows rows;
        Buffer indptr;
        run_unlocked([&] {
            parser_.wait();
            rows = give();
            if (parser_.options().float32)
                give_shape<float>(rows, dense);
            else
                give_shape<double>(rows, dense);
            indptr = rows.wide ? to_indptr<std::int64_t>(rows.row_ends) : to_indptr<std::int32_t>(rows.row_ends);
        });
        const auto index_array = [&](Buffer &buffer) {
            return rows.wide ? to_array<std::int64_t>(buffer) : to_array<std::int32_t>(buffer);
        };
        return nb::make_tuple(index_array(indptr), rows.full ? nb::none() : index_array(rows.indices),
                              parser_.options().float32 ? to_array<float>(rows.values) : to_array<double>(rows.values),
                              to_array<double>(rows.relevance), to_array_or_none<std::int64_t>(rows.qids),
                              to_array_or_none<double>(rows.costs), rows.n_columns, rows.unknown,
                              to_array<double>(rows.labels), to_array<std::int64_t>(rows.label_ends),
                              to_array_or_none<std::int64_t>(rows.bags), to_array<std::int64_t>(rows.row_lines));
    }

    nb::object block_;  // outlives the parser, whose destructor waits
    svmlight::Parser parser_;
    std::mutex mutex_;
};

}  // namespace

void bind_svmlight(nb::module_ &m) {
    syntax_error_type = PyErr_NewException("apsvm._native._kernels.SvmlightError", PyExc_ValueError, nullptr);
    if (syntax_error_type == nullptr) throw nb::python_error();
    m.attr("SvmlightError") = nb::borrow(syntax_error_type);

    nb::class_<SvmlightParser>(m, "SvmlightParser",
                               "Push parser of svmlight text: feed() it the bytes, finish() gives the arrays.")
        .def(
            "__init__",
            [](SvmlightParser *self, bool zero_based, bool float32, std::int64_t n_features, std::int64_t max_features,
               bool ignore_unknown, bool sort_features, bool multilabel, double fill_if, std::int64_t narrow_limit,
               std::size_t threads, std::size_t least_chunk) {
                expect_threads(threads);
                if (narrow_limit < 0 || narrow_limit > std::numeric_limits<std::int32_t>::max())
                    throw std::invalid_argument("expected a narrow_limit that int32 can hold");
                if (!(fill_if >= 0.0 && fill_if <= 4.0))  // what is filled is memory
                    throw std::invalid_argument("expected a fill_if from 0 to 4");
                new (self) SvmlightParser(Options{zero_based, float32, n_features, max_features, ignore_unknown,
                                                  sort_features, multilabel, fill_if, narrow_limit},
                                          threads, least_chunk);
            },
            nb::kw_only(), nb::arg("zero_based") = false, nb::arg("float32") = false, nb::arg("n_features") = -1,
            nb::arg("max_features") = -1, nb::arg("ignore_unknown") = false, nb::arg("sort_features") = false,
            nb::arg("multilabel") = false, nb::arg("fill_if") = 0.0,
            nb::arg("narrow_limit") = std::int64_t{std::numeric_limits<std::int32_t>::max()}, nb::arg("threads") = 1,
            nb::arg("least_chunk") = 1 << 18)
        .def("feed", &SvmlightParser::feed, nb::arg("block"),
             "Parses the next bytes; raises SvmlightError(line, column, message).\n\n"
             "With several threads the parsing may go on behind it; its errors are raised by the next call.")
        .def("wait", &SvmlightParser::wait, "Until all that was fed is parsed; raises SvmlightError.")
        .def("take", &SvmlightParser::take, nb::arg("dense") = false,
             "What finish() gives, of the rows so far; what is fed from then on are other rows, of the same file.")
        .def("finish", &SvmlightParser::finish, nb::arg("dense") = false,
             "The arrays (indptr, indices, values, relevance, qids | None, costs | None, n_columns, n_unknown, labels, "
             "label_ends, bags | None, row_lines).\n\n"
             "indices is None where `dense` was requested and each row has all columns, or lacks so few that the "
             "dense matrix takes at most `fill_if` times the bytes: values is then that matrix. row_lines is empty without bags. n_columns is one more than the largest column stored. The parser is spent afterwards.");
}
