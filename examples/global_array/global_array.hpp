// An array that is spread over the processes of a communicator in blocks, after DASH: any process reads and writes
// any element, alone or in ranges, and adds to it atomically, while the owner computes. Header only, C++17.
// Local elements are plain memory. Without memory handles each array would need a window, and each access an epoch.
#ifndef GLOBAL_ARRAY_HPP
#define GLOBAL_ARRAY_HPP

#include <mpi.h>

#include "../../include/fompi_rma.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace global {

/// The MPI datatype of elements that can be combined.
template <class T> MPI_Datatype datatype();
template <> inline MPI_Datatype datatype<int>() { return MPI_INT; }
template <> inline MPI_Datatype datatype<long>() { return MPI_LONG; }
template <> inline MPI_Datatype datatype<unsigned long>() { return MPI_UNSIGNED_LONG; }
template <> inline MPI_Datatype datatype<float>() { return MPI_FLOAT; }
template <> inline MPI_Datatype datatype<double>() { return MPI_DOUBLE; }

inline void check(int code, const char *call) {
    if (code != MPI_SUCCESS) throw std::runtime_error(call);
}

/// The processes that share arrays. Making and ending one is collective; it is the only window.
class Team {
  public:
    explicit Team(MPI_Comm comm) {
        check(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
        check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
        check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
        check(MPI_Win_create_dynamic(MPI_INFO_NULL, comm_, &win_), "MPI_Win_create_dynamic");
        check(MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    }
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;
    ~Team() {
        MPI_Win_free(&win_);
        MPI_Comm_free(&comm_);
    }

    int rank() const { return rank_; }
    int size() const { return size_; }
    MPI_Comm comm() const { return comm_; }
    MPI_Win win() const { return win_; }

    /// Completes what all processes have done to the arrays of the team, and waits for them.
    void barrier() const { check(FOMPI_Complete_collective(win_), "FOMPI_Complete_collective"); }
    /// Completes what this process has done.
    void flush() const { check(FOMPI_Complete(FOMPI_ALL_RANKS, win_), "FOMPI_Complete"); }

  private:
    MPI_Comm comm_ = MPI_COMM_NULL;
    MPI_Win win_ = MPI_WIN_NULL;
    int rank_ = 0, size_ = 1;
};

/// An array of `size` elements in blocks of equal length, the last ones shorter. Making and ending one is collective.
template <class T> class Array {
    static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");

  public:
    /// An element: reads and writes complete when they return.
    class Reference {
      public:
        operator T() const { return array_.read(index_); }
        Reference &operator=(const T &value) {
            array_.write(index_, value);
            return *this;
        }
        Reference &operator=(const Reference &other) { return *this = static_cast<T>(other); }

      private:
        friend class Array;
        Reference(Array &array, std::size_t index) : array_(array), index_(index) {}
        Array &array_;
        std::size_t index_;
    };

    Array(const Team &team, std::size_t size)
        : team_(team), size_(size), block_((size + static_cast<std::size_t>(team.size()) - 1) /
                                           static_cast<std::size_t>(team.size())),
          mems_(static_cast<std::size_t>(team.size()), FOMPI_MEM_NULL) {
        const std::size_t processes = mems_.size();
        const auto bytes = static_cast<MPI_Aint>(std::max<std::size_t>(block_, 1) * sizeof(T));
        FOMPI_Mem &mine = mems_[static_cast<std::size_t>(team.rank())];
        check(FOMPI_Mem_allocate(bytes, MPI_INFO_NULL, team.win(), &local_, &mine), "FOMPI_Mem_allocate");
        std::fill_n(local_, block_, T{});
        std::array<char, FOMPI_MEM_BYTES> packed;
        std::vector<char> all(processes * packed.size());
        check(FOMPI_Mem_pack(mine, packed.data()), "FOMPI_Mem_pack");
        check(MPI_Allgather(packed.data(), FOMPI_MEM_BYTES, MPI_BYTE, all.data(), FOMPI_MEM_BYTES, MPI_BYTE,
                            team.comm()), "MPI_Allgather");
        for (std::size_t i = 0; i < processes; i++)
            if (mems_[i] == FOMPI_MEM_NULL)
                check(FOMPI_Mem_unpack(&all[i * packed.size()], team.win(), &mems_[i]), "FOMPI_Mem_unpack");
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array() {
        FOMPI_Complete_collective(team_.win());
        for (std::size_t i = 0; i < mems_.size(); i++)
            if (i != static_cast<std::size_t>(team_.rank())) FOMPI_Mem_release(&mems_[i]);
        FOMPI_Mem_withdraw(&mems_[static_cast<std::size_t>(team_.rank())]);
        MPI_Free_mem(local_);
    }

    std::size_t size() const { return size_; }
    Reference operator[](std::size_t index) { return {*this, index}; }

    /// The process that has an element.
    int owner(std::size_t index) const { return static_cast<int>(index / block_); }
    /// The elements of this process, and the index of the first one.
    T *begin() { return local_; }
    T *end() { return local_ + local_size(); }
    std::size_t first() const { return std::min(size_, block_ * static_cast<std::size_t>(team_.rank())); }
    std::size_t local_size() const { return std::min(block_, size_ - first()); }

    T read(std::size_t index) const {
        T value;
        transfer(index, 1, [&](FOMPI_Mem mem, MPI_Aint disp, std::size_t, std::size_t) {
            return FOMPI_Mem_get(&value, sizeof(T), MPI_BYTE, mem, disp, FOMPI_BLOCKING);
        });
        return value;
    }
    void write(std::size_t index, const T &value) { put(index, &value, 1, FOMPI_REMOTE); }

    /// Copies `count` elements from `index` on to `to`; they have arrived behind `Team::flush`.
    void get(std::size_t index, T *to, std::size_t count) const {
        transfer(index, count, [&](FOMPI_Mem mem, MPI_Aint disp, std::size_t done, std::size_t now) {
            return FOMPI_Mem_get(to + done, static_cast<MPI_Count>(now * sizeof(T)), MPI_BYTE, mem, disp, 0);
        });
    }
    /// Copies `count` elements from `from` to the array, with the attributes of FOMPI_Mem_put. `from` is in use
    /// until `Team::flush`.
    void put(std::size_t index, const T *from, std::size_t count, int attributes = 0) {
        transfer(index, count, [&](FOMPI_Mem mem, MPI_Aint disp, std::size_t done, std::size_t now) {
            return FOMPI_Mem_put(from + done, static_cast<MPI_Count>(now * sizeof(T)), MPI_BYTE, mem, disp, attributes);
        });
    }
    /// Adds to an element, atomically; `from` is copied.
    void add(std::size_t index, const T &value) {
        transfer(index, 1, [&](FOMPI_Mem mem, MPI_Aint disp, std::size_t, std::size_t) {
            return FOMPI_Mem_accumulate(&value, 1, datatype<T>(), mem, disp, MPI_SUM, FOMPI_BLOCKING);
        });
    }
    /// Adds to an element, and returns what it was.
    T fetch_add(std::size_t index, const T &value) {
        T before;
        transfer(index, 1, [&](FOMPI_Mem mem, MPI_Aint disp, std::size_t, std::size_t) {
            return FOMPI_Mem_fetch_and_op(&value, &before, datatype<T>(), mem, disp, MPI_SUM, FOMPI_BLOCKING);
        });
        return before;
    }

  private:
    /// Calls `work` for the part of a range at each process: handle, displacement, elements done, elements now.
    template <class Work> void transfer(std::size_t index, std::size_t count, Work work) const {
        if (index > size_ || count > size_ - index) throw std::out_of_range("global::Array");
        for (std::size_t done = 0; done < count;) {
            const std::size_t at = index + done, offset = at % block_, now = std::min(count - done, block_ - offset);
            check(work(mems_[at / block_], static_cast<MPI_Aint>(offset * sizeof(T)), done, now), "transfer");
            done += now;
        }
    }

    const Team &team_;
    std::size_t size_, block_;
    T *local_ = nullptr;
    std::vector<FOMPI_Mem> mems_;
};

} // namespace global

#endif
