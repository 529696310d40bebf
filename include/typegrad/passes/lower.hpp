// lower: clusters become kernels with programs and operands, nodes become buffers. Graph, Clusters -> Plan.
#pragma once

#include <utility>
#include <vector>

#include "typegrad/passes/fuse.hpp"
#include "typegrad/passes/plan.hpp"

namespace tg {
namespace detail {

class Lowerer {
 public:
  constexpr Lowerer(const Graph& g, const Clusters& c) : g_(g), c_(c) {
    find_members();
    place_outputs();
    place_composites();
    for (int id = 0; id < g.size(); ++id)
      if (c.stored[static_cast<std::size_t>(id)] && location(id).buffer < 0) location(id) = {arena(g[id].dtype, g.shape(id).size()), {}};
    order_clusters();
    for (auto [node, buffer] : leaf_copies_) copy_whole(node, buffer);
    for (int c_index : order_) lower_cluster(c_index);
    for (auto [node, buffer] : copies_) copy_whole(node, buffer);
    find_lifetimes();
  }
  constexpr Plan take() { return std::move(p_); }

 private:
  struct Location {
    int buffer = -1;
    Offset offset;
  };

  constexpr Location& location(int id) {
    if (locations_.empty()) locations_.resize(g_.nodes.size());
    return locations_[static_cast<std::size_t>(id)];
  }
  // The nodes of each cluster, and the cluster that writes each node.
  constexpr void find_members() {
    const std::size_t count = c_.clusters.size();
    owner_.assign(g_.nodes.size(), -1);
    for (std::size_t c = 0; c < count; ++c)
      if (c_.clusters[c].kind == ClusterKind::Composite) owner_[static_cast<std::size_t>(c_.clusters[c].root)] = static_cast<int>(c);
    first_member_.assign(count + 1, 0);
    for (int id = 0; id < g_.size(); ++id) {
      const int c = cluster_of(id);
      if (c < 0) continue;
      owner_[static_cast<std::size_t>(id)] = c;
      ++first_member_[static_cast<std::size_t>(c) + 1];
    }
    for (std::size_t c = 0; c < count; ++c) first_member_[c + 1] += first_member_[c];
    members_.resize(static_cast<std::size_t>(first_member_[count]));
    std::vector<int> next = first_member_;
    for (int id = 0; id < g_.size(); ++id)
      if (const int c = cluster_of(id); c >= 0) members_[static_cast<std::size_t>(next[static_cast<std::size_t>(c)]++)] = id;
  }
  constexpr int owner(int id) const { return owner_[static_cast<std::size_t>(id)]; }
  constexpr int cluster_of(int id) const { return c_.cluster_of[static_cast<std::size_t>(id)]; }
  constexpr bool is_stored(int id) const { return c_.stored[static_cast<std::size_t>(id)] != 0; }

  constexpr int add_buffer(PlanBuffer::Kind kind, DType t, int position, Dim elements) {
    PlanBuffer b;
    b.kind = kind;
    b.dtype = t;
    b.position = position;
    b.elements = elements;
    p_.buffers.push_back(b);
    return static_cast<int>(p_.buffers.size()) - 1;
  }
  constexpr int arena(DType t, Dim elements) { return add_buffer(PlanBuffer::Kind::Arena, t, 0, elements); }

  // Inputs, and outputs in their final memory. An output that takes over an input's memory is written there directly
  // only if nothing can still need what it replaces; order_clusters may find otherwise.
  constexpr void place_outputs() {
    for (int id = 0; id < g_.size(); ++id) {
      const Node& n = g_[id];
      if (n.op == Op::Input)
        location(id).buffer = add_buffer(PlanBuffer::Kind::Input, n.dtype, static_cast<int>(n.attribute), g_.shape(id).size());
      if (n.op == Op::Size)
        location(id).buffer = add_buffer(PlanBuffer::Kind::Size, n.dtype, static_cast<int>(n.attribute), Dim(1));
    }
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const int id = g_.outputs[k];
      const int donor = k < g_.donors.size() ? g_.donors[k] : -1;
      int buffer = -1;
      if (donor >= 0) {
        for (int i = 0; i < g_.size(); ++i)
          if (g_[i].op == Op::Input && g_[i].attribute == donor) buffer = location(i).buffer;
      } else {
        buffer = add_buffer(PlanBuffer::Kind::Output, g_[id].dtype, static_cast<int>(k), g_.shape(id).size());
      }
      if (info(g_[id].op).kind == OpKind::leaf) {
        if (donor >= 0 && buffer == location(id).buffer) continue;
        if (donor >= 0) throw "typegrad: an input or a constant cannot take over the memory of another input";
        leaf_copies_.emplace_back(id, buffer);
      } else if (location(id).buffer >= 0 || (donor >= 0 && !replaces_in_place(id, buffer))) copies_.emplace_back(id, buffer);
      else location(id).buffer = buffer;
    }
  }

  // Whether the cluster that computes the node reads the buffer only at the element it then writes, and no other
  // cluster that reads the buffer depends on this one.
  constexpr bool replaces_in_place(int id, int buffer) {
    const int c = cluster_of(id);
    if (c < 0 || c_.clusters[static_cast<std::size_t>(c)].kind != ClusterKind::Loop || c_.clusters[static_cast<std::size_t>(c)].reduced != 0)
      return false;
    std::vector<char> after(c_.clusters.size(), 0);
    after[static_cast<std::size_t>(c)] = 1;
    std::vector<int> source(g_.nodes.size(), -1);  // views: the cluster that writes what they show
    for (int u = 0; u < g_.size(); ++u) {
      const Node& n = g_[u];
      const int uc = owner(u);
      for (int a = 0; a < arity(n.op); ++a) {
        const int x = n.in[static_cast<std::size_t>(a)];
        const int xo = source[static_cast<std::size_t>(x)];
        if (xo >= 0 && after[static_cast<std::size_t>(xo)] && uc >= 0 && uc != xo) after[static_cast<std::size_t>(uc)] = 1;
        if (uc < 0 && xo >= 0) source[static_cast<std::size_t>(u)] = xo;
      }
      if (uc >= 0) source[static_cast<std::size_t>(u)] = uc;
    }
    for (int u = 0; u < g_.size(); ++u) {
      const int uc = owner(u);
      if (uc < 0) continue;
      for (int a = 0; a < arity(g_[u].op); ++a) {
        const int x = g_[u].in[static_cast<std::size_t>(a)];
        const int base = view_base(x);
        if (location(base).buffer != buffer || g_[base].op != Op::Input) continue;
        if (uc == c) {
          const bool anywhere = g_[u].op == Op::Gather && a == 0;
          if (anywhere || x != base || !(c_.map_of[static_cast<std::size_t>(u)] == c_.map_of[static_cast<std::size_t>(id)])) return false;
        } else if (after[static_cast<std::size_t>(uc)]) {
          return false;
        }
      }
    }
    return true;
  }
  constexpr int view_base(int id) const {
    while (is_view(g_[id].op) && !is_stored(id)) id = g_[id].in[0];
    return id;
  }

  // The parts of a concatenation are computed where they belong, if each is one contiguous piece that a cluster writes.
  constexpr void place_composites() {
    placed_.assign(g_.nodes.size(), 0);
    for (int id = g_.size() - 1; id >= 0; --id) {
      const Node& n = g_[id];
      if (info(n.op).kind != OpKind::structural || !is_stored(id)) continue;
      if (location(id).buffer < 0) location(id).buffer = arena(n.dtype, g_.shape(id).size());
      if (n.op != Op::Concat) continue;
      const Shape& s = g_.shape(id);
      bool outermost = true;
      for (int i = 0; i < static_cast<int>(n.attribute); ++i) outermost = outermost && s[i].is(1);
      if (!outermost) continue;
      for (int a = 0; a < 2; ++a) {
        const int x = n.in[static_cast<std::size_t>(a)];
        const int base = view_base(x);
        if (!is_stored(base) || location(base).buffer >= 0) continue;
        const Layout l = view_layout(g_, x, [&](int v) { return v == base; });
        if (l.base < 0 || !is_row_major(l, g_.shape(x)) || !(l.offset == Offset{}) || !(g_.shape(x).size() == g_.shape(base).size()))
          continue;
        Location at = location(id);
        if (a == 1) at.offset.add(g_.shape(n.in[0]).size());
        location(base) = at;
        placed_[static_cast<std::size_t>(x)] = 1;
      }
    }
  }

  // Kahn's algorithm; among those ready, the cluster whose root comes first in the graph.
  constexpr void order_clusters() {
    const std::size_t count = c_.clusters.size();
    std::vector<std::vector<int>> users(count);
    std::vector<int> waiting(count, 0);
    auto depend = [&](int before, int after) {
      if (before < 0 || before == after) return;
      for (int u : users[static_cast<std::size_t>(before)])
        if (u == after) return;
      users[static_cast<std::size_t>(before)].push_back(after);
      ++waiting[static_cast<std::size_t>(after)];
    };
    std::vector<std::pair<int, int>> reads;  // input buffer, reader
    for (int id = 0; id < g_.size(); ++id) {
      const int c = owner(id);
      if (c < 0) continue;
      for (int a = 0; a < arity(g_[id].op); ++a) {
        const int base = view_base(g_[id].in[static_cast<std::size_t>(a)]);
        depend(owner(base), c);
        if (g_[base].op == Op::Input) reads.emplace_back(location(base).buffer, c);
      }
    }
    for (std::size_t k = 0; k < g_.donors.size(); ++k) {
      const int id = g_.outputs[k];
      if (g_.donors[k] < 0 || cluster_of(id) < 0) continue;
      for (auto [buffer, reader] : reads)
        if (buffer == location(id).buffer) depend(reader, cluster_of(id));
    }
    const auto later = [&](int a, int b) { return c_.clusters[static_cast<std::size_t>(a)].root > c_.clusters[static_cast<std::size_t>(b)].root; };
    std::vector<int> ready;  // a heap
    const auto release = [&](int c) {
      ready.push_back(c);
      std::push_heap(ready.begin(), ready.end(), later);
    };
    for (std::size_t c = 0; c < count; ++c)
      if (waiting[c] == 0) release(static_cast<int>(c));
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), later);
      const int c = ready.back();
      ready.pop_back();
      order_.push_back(c);
      for (int u : users[static_cast<std::size_t>(c)])
        if (--waiting[static_cast<std::size_t>(u)] == 0) release(u);
    }
    if (order_.size() != count) throw "typegrad: the fused kernels depend on each other in a circle";
  }

  // ---- one kernel -------------------------------------------------------------------------------------------------

  struct Draft {
    std::vector<Instruction> program;
    std::vector<KernelOperand> operands;
    std::vector<std::pair<int, int>> value;  // node in the cluster -> instruction
    Shape iteration;
    std::int64_t reduced = 0;
    bool rows = false;  // a loop with reduced axes: values may be constant along them
  };

  constexpr int push(Draft& d, const Instruction& i) {
    d.program.push_back(i);
    return static_cast<int>(d.program.size()) - 1;
  }
  constexpr int operand(Draft& d, int buffer, DType t, const Offset& offset, const Layout& l, const Shape& s, const AxisMap& m) {
    KernelOperand o;
    o.buffer = buffer;
    o.dtype = t;
    o.offset = offset;
    for (int i = 0; i < s.rank; ++i)
      if (m[i] < AxisMap::unit && !s[i].is(1)) o.strides[static_cast<std::size_t>(m[i])] = l.stride(i);
    for (std::size_t k = 0; k < d.operands.size(); ++k)
      if (d.operands[k].buffer == o.buffer && d.operands[k].offset == o.offset && d.operands[k].strides == o.strides)
        return static_cast<int>(k);
    d.operands.push_back(o);
    return static_cast<int>(d.operands.size()) - 1;
  }

  constexpr bool row_level(const Draft& d, const Shape& s, const AxisMap& m) const {
    if (!d.rows) return false;
    for (int i = 0; i < s.rank; ++i)
      if (m[i] < AxisMap::unit && !s[i].is(1) && ((d.reduced >> m[i]) & 1)) return false;
    return true;
  }

  // Where a node outside the cluster is read from.
  constexpr std::pair<Location, Layout> source(int id) {
    const int base = view_base(id);
    Layout l = view_layout(g_, id, [&](int v) { return v == base; });
    if (l.base < 0) throw "typegrad: a reshape needs a copy that fuse did not plan";
    Location at = location(base);
    if (at.buffer < 0) throw "typegrad: a kernel reads a value that fuse did not store";
    for (const Dim& t : l.offset.terms) at.offset.add(t);
    return {at, l};
  }

  // Axes of extent 1 lie anywhere.
  constexpr bool same_place(int id, const AxisMap& m) const {
    for (int i = 0; i < g_.shape(id).rank; ++i)
      if (!g_.shape(id)[i].is(1) && m[i] != c_.map_of[static_cast<std::size_t>(id)][i]) return false;
    return true;
  }

  constexpr int value_of(Draft& d, int c, int id, const AxisMap& m) {
    if (cluster_of(id) == c && same_place(id, m))
      for (auto [node, instruction] : d.value)
        if (node == id) return instruction;
    const Node& n = g_[id];
    // Seen through a view that other clusters use as well, a value of this cluster is still this cluster's.
    if (AxisMap inner; is_view(n.op) && cluster_of(id) != c && !is_stored(id) && cluster_of(view_base(id)) == c && Fuser::through(g_, id, m, inner))
      return value_of(d, c, n.in[0], inner);
    Instruction i;
    i.dtype = n.dtype;
    i.row = row_level(d, g_.shape(id), m);
    const int base = view_base(id);
    if (g_[base].op == Op::Constant) {
      i.code = Code::Literal;
      i.bits = g_[base].attribute;
      i.row = true;
    } else if (g_[base].op == Op::Iota && (id == own_leaf_ || !is_stored(base))) {
      i.code = Code::Index;
      i.slot = static_cast<std::int16_t>(ramp(d, id, base, m));
    } else {
      const auto [at, layout] = source(id);
      i.code = Code::Load;
      i.slot = static_cast<std::int16_t>(operand(d, at.buffer, n.dtype, at.offset, layout, g_.shape(id), m));
    }
    for (std::size_t k = 0; k < d.program.size(); ++k)
      if (d.program[k] == i) return static_cast<int>(k);
    return push(d, i);
  }

  // A ramp is read like a vector of which each element is its own index.
  constexpr int ramp(Draft& d, int id, int base, const AxisMap& m) {
    const Layout l = view_layout(g_, id, [&](int v) { return v == base; });
    if (l.base < 0) throw "typegrad: a reshape needs a copy that fuse did not plan";
    return operand(d, -1, DType::i64, l.offset, l, g_.shape(id), m);
  }

  constexpr void lower_cluster(int c) {
    const Cluster& k = c_.clusters[static_cast<std::size_t>(c)];
    if (k.kind == ClusterKind::Composite) return lower_composite(k.root);
    if (k.kind == ClusterKind::Routine) return lower_routine(k.root);
    Draft d;
    d.iteration = k.iteration;
    d.reduced = k.reduced;
    d.rows = k.reduced != 0;
    if (k.dot >= 0) begin_contraction(d, k.dot);
    int last = k.root;
    for (int at = first_member_[static_cast<std::size_t>(c)]; at < first_member_[static_cast<std::size_t>(c) + 1]; ++at) {
      const int id = members_[static_cast<std::size_t>(at)];
      last = id;
      const Node& n = g_[id];
      const AxisMap& m = c_.map_of[static_cast<std::size_t>(id)];
      int value = -1;
      if (is_view(n.op)) {
        AxisMap inner;
        const bool own = cluster_of(n.in[0]) == c || (!is_stored(n.in[0]) && cluster_of(view_base(n.in[0])) == c);
        if (own && Fuser::through(g_, id, m, inner)) value = value_of(d, c, n.in[0], inner);
        else value = value_of_view(d, id, m);
      } else {
        Instruction i;
        i.dtype = n.dtype;
        i.row = row_level(d, g_.shape(id), m);
        i.op = n.op;
        if (n.op == Op::Dot) {
          i.code = Code::Product;
        } else if (is_reduction(n.op)) {
          AxisMap inner = m;
          for (int axis = 0; axis < max_rank; ++axis)
            if ((n.attribute >> axis) & 1) inner[axis] = static_cast<std::int8_t>(m[axis] - AxisMap::unit);
          i.code = Code::Fold;
          i.a = static_cast<std::int16_t>(value_of(d, c, n.in[0], inner));
          i.row = true;
        } else if (n.op == Op::Gather) {
          i.code = Code::Gather;
          i.slot = static_cast<std::int16_t>(operand(d, row_major_source(n.in[0]), g_[n.in[0]].dtype, {}));
          i.a = static_cast<std::int16_t>(value_of(d, c, n.in[1], m));
        } else if (is_elementwise(n.op)) {
          i.code = Code::Compute;
          std::int16_t* slots[] = {&i.a, &i.b, &i.c};
          for (int a = 0; a < arity(n.op); ++a)
            *slots[a] = static_cast<std::int16_t>(value_of(d, c, n.in[static_cast<std::size_t>(a)], m));
          if (n.op == Op::CheckIndex) i.bits = n.attribute;
        } else {
          value = leaf_value(d, id, m);
        }
        if (value < 0) value = push(d, i);
      }
      d.value.emplace_back(id, value);
      if (is_stored(id) && location(id).buffer >= 0) store(d, id, value, location(id), m);
    }
    finish(d, k.dot >= 0 ? KernelKind::Contract : k.reduced == 0 ? KernelKind::Map : k.column ? KernelKind::Column : KernelKind::Row,
           k.dot, last);
  }

  // Where a node's elements lie one after the other.
  constexpr Location row_major_source(int id) {
    const auto [at, layout] = source(id);
    if (!is_row_major(layout, g_.shape(id))) throw "typegrad: a kernel needs a row-major operand that fuse did not plan";
    return at;
  }
  constexpr int operand(Draft& d, const Location& at, DType t, const std::array<Dim, max_rank>& strides) {
    KernelOperand o;
    o.buffer = at.buffer;
    o.dtype = t;
    o.offset = at.offset;
    o.strides = strides;
    d.operands.push_back(o);
    return static_cast<int>(d.operands.size()) - 1;
  }

  constexpr void lower_routine(int id) {
    const Node& n = g_[id];
    const bool scatters = is_scatter(n.op);
    const Shape &s = g_.shape(id), &from = g_.shape(n.in[0]);
    Kernel k;
    k.kind = KernelKind::Routine;
    k.node = id;
    k.kept = 2;
    k.extents[0] = scatters ? from.size() : Dim(1);
    for (int i = 0; !scatters && i + 1 < from.rank; ++i) k.extents[0] = k.extents[0] * from[i];
    k.extents[1] = scatters ? s.size() : from[from.rank - 1];
    Draft d;
    Instruction routine;
    routine.code = Code::Routine;
    routine.op = n.op;
    routine.dtype = n.dtype;
    routine.bits = n.attribute;
    std::int16_t* slots[] = {&routine.a, &routine.b, &routine.c};
    for (int a = 0; a < arity(n.op); ++a) {
      const int x = n.in[static_cast<std::size_t>(a)];
      Instruction i;
      i.dtype = g_[x].dtype;
      i.slot = static_cast<std::int16_t>(operand(d, row_major_source(x), i.dtype, {scatters ? Dim(1) : k.extents[1], Dim(scatters ? 0 : 1)}));
      *slots[a] = static_cast<std::int16_t>(push(d, i));
    }
    Instruction store;
    store.code = Code::Store;
    store.dtype = n.dtype;
    store.a = static_cast<std::int16_t>(push(d, routine));
    store.slot = static_cast<std::int16_t>(operand(d, location(id), n.dtype, {scatters ? Dim(0) : s[s.rank - 1], Dim(1)}));
    push(d, store);
    emit(k, d);
  }
  constexpr void emit(Kernel& k, const Draft& d) {
    k.first_operand = static_cast<std::int32_t>(p_.operands.size());
    k.operands = static_cast<std::int32_t>(d.operands.size());
    for (const KernelOperand& o : d.operands) p_.operands.push_back(o);
    k.first_instruction = static_cast<std::int32_t>(p_.instructions.size());
    k.instructions = static_cast<std::int32_t>(d.program.size());
    for (const Instruction& i : d.program) p_.instructions.push_back(i);
    p_.kernels.push_back(k);
  }

  // A constant or a ramp that is written to memory.
  constexpr int leaf_value(Draft& d, int id, const AxisMap& m) {
    own_leaf_ = id;
    const int value = value_of(d, -2, id, m);
    own_leaf_ = -1;
    return value;
  }

  // A view whose operand lies outside the cluster, read through its layout.
  constexpr int value_of_view(Draft& d, int id, const AxisMap& m) {
    const int x = g_[id].in[0];
    const int base = is_stored(id) ? view_base(x) : view_base(id);
    Instruction i;
    i.dtype = g_[id].dtype;
    i.row = row_level(d, g_.shape(id), m);
    if (g_[base].op == Op::Constant) {
      i.code = Code::Literal;
      i.bits = g_[base].attribute;
      i.row = true;
    } else if (g_[base].op == Op::Iota && !is_stored(base)) {
      i.code = Code::Index;
      i.slot = static_cast<std::int16_t>(ramp(d, id, base, m));
    } else {
      const Layout l = view_layout(g_, id, [&](int v) { return v == base; });
      if (l.base < 0) throw "typegrad: a reshape needs a copy that fuse did not plan";
      Location at = location(base);
      for (const Dim& t : l.offset.terms) at.offset.add(t);
      i.code = Code::Load;
      i.slot = static_cast<std::int16_t>(operand(d, at.buffer, i.dtype, at.offset, l, g_.shape(id), m));
    }
    for (std::size_t k = 0; k < d.program.size(); ++k)
      if (d.program[k] == i) return static_cast<int>(k);
    return push(d, i);
  }

  constexpr void store(Draft& d, int id, int value, const Location& at, const AxisMap& m) {
    Instruction s;
    s.code = Code::Store;
    s.dtype = g_[id].dtype;
    s.a = static_cast<std::int16_t>(value);
    s.row = row_level(d, g_.shape(id), m);
    s.slot = static_cast<std::int16_t>(operand(d, at.buffer, s.dtype, at.offset, row_major(id, g_.shape(id)), g_.shape(id), m));
    push(d, s);
  }

  constexpr void begin_contraction(Draft& d, int dot) {
    const DotAxes axes = DotAxes::decode(g_.list(dot));
    for (int side = 0; side < 2; ++side) {
      const int x = g_[dot].in[static_cast<std::size_t>(side)];
      const bool lhs = side == 0;
      AxisMap m;
      int free = axes.batch;
      if (!lhs)
        for (int i = 0; i < g_.shape(g_[dot].in[0]).rank; ++i) free += axes.role(true, i) == 'f';
      for (int i = 0; i < g_.shape(x).rank; ++i) {
        const char role = axes.role(lhs, i);
        if (role == 'f') m[i] = static_cast<std::int8_t>(free++);
        for (int k = 0; k < axes.batch; ++k)
          if ((lhs ? axes.lhs_batch : axes.rhs_batch)[static_cast<std::size_t>(k)] == i) m[i] = static_cast<std::int8_t>(k);
        for (int k = 0; k < axes.contract; ++k)
          if ((lhs ? axes.lhs_contract : axes.rhs_contract)[static_cast<std::size_t>(k)] == i)
            m[i] = static_cast<std::int8_t>(g_.shape(dot).rank + k);
      }
      if (lhs)
        for (int k = 0; k < axes.contract; ++k) {
          d.iteration.push(g_.shape(x)[axes.lhs_contract[static_cast<std::size_t>(k)]]);
          d.reduced |= std::int64_t{1} << (g_.shape(dot).rank + k);
        }
      const auto [at, layout] = source(x);
      KernelOperand o;
      o.buffer = at.buffer;
      o.dtype = g_[x].dtype;
      o.offset = at.offset;
      for (int i = 0; i < g_.shape(x).rank; ++i)
        if (!g_.shape(x)[i].is(1)) o.strides[static_cast<std::size_t>(m[i])] = layout.stride(i);
      d.operands.push_back(o);  // not through operand(): both factors may be the same matrix
    }
  }

  // The longest chain of folds of which one needs the result of the other.
  static constexpr int phases_of(const Draft& d) {
    std::vector<int> phase(d.program.size(), 0);
    int longest = 0;
    for (std::size_t i = 0; i < d.program.size(); ++i) {
      const Instruction& s = d.program[i];
      for (const int a : std::array{int{s.a}, int{s.b}, int{s.c}})
        if (a >= 0 && phase[static_cast<std::size_t>(a)] > phase[i]) phase[i] = phase[static_cast<std::size_t>(a)];
      if (s.code == Code::Fold) ++phase[i];
      longest = phase[i] > longest ? phase[i] : longest;
    }
    return longest;
  }

  // Orders the axes, drops those of extent 1, merges neighbours that every operand walks through as one.
  constexpr void finish(Draft& d, KernelKind kind, int dot, int node) {
    for (std::size_t i = 0; i < d.program.size(); ++i)
      for (std::size_t j = i + 1; d.program[i].code == Code::Store && j < d.program.size(); ++j)
        if ((d.program[j].code == Code::Load || d.program[j].code == Code::Gather) && d.program[j].slot == d.program[i].slot) throw "typegrad: a kernel reads what it has written";
    if (kind == KernelKind::Column && phases_of(d) > 1) throw "typegrad: a pass over columns needs the result of another";
    Kernel k;
    k.kind = kind;
    k.node = node;
    std::vector<int> axes;   // of the iteration, in the kernel's order
    std::vector<int> group;  // only axes of one group merge
    int lhs_end = 0, batch = 0;
    if (dot >= 0) {
      const DotAxes a = DotAxes::decode(g_.list(dot));
      batch = a.batch;
      lhs_end = batch;
      for (int i = 0; i < g_.shape(g_[dot].in[0]).rank; ++i) lhs_end += a.role(true, i) == 'f';
    }
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i < d.iteration.rank; ++i) {
        const bool reduced = ((d.reduced >> i) & 1) != 0;
        if (reduced != (pass == 1) || d.iteration[i].is(1)) continue;
        axes.push_back(i);
        group.push_back(reduced ? 3 : dot < 0 ? 0 : i < batch ? 0 : i < lhs_end ? 1 : 2);
      }
    std::vector<Dim> extent;
    std::vector<std::vector<Dim>> stride(d.operands.size());
    std::vector<int> merged_group;
    for (std::size_t j = 0; j < axes.size(); ++j) {
      const int axis = axes[j];
      bool merge = !extent.empty() && merged_group.back() == group[j];
      for (std::size_t o = 0; merge && o < d.operands.size(); ++o)
        merge = stride[o].back() == d.operands[o].strides[static_cast<std::size_t>(axis)] * d.iteration[axis];
      for (std::size_t o = 0; o < d.operands.size(); ++o) {
        const Dim s = d.operands[o].strides[static_cast<std::size_t>(axis)];
        if (merge) stride[o].back() = s;
        else stride[o].push_back(s);
      }
      if (merge) {
        extent.back() = extent.back() * d.iteration[axis];
      } else {
        extent.push_back(d.iteration[axis]);
        merged_group.push_back(group[j]);
      }
    }
    // A contraction has exactly one axis of rows and one of columns: further ones become batched axes. Missing axes
    // have extent 1.
    std::vector<std::pair<int, int>> order;  // (position or -1, group)
    // The last axis of a group, which is contiguous as a rule, or the largest if the last is too small for a matrix product.
    auto major_of = [&](int g) {
      int last = -1, largest = -1;
      for (std::size_t j = 0; j < extent.size(); ++j) {
        if (merged_group[j] != g) continue;
        last = static_cast<int>(j);
        if (largest < 0 || !extent[j].is_static() || extent[j].coefficient >= extent[static_cast<std::size_t>(largest)].coefficient) largest = last;
      }
      const bool small = last >= 0 && extent[static_cast<std::size_t>(last)].is_static() && extent[static_cast<std::size_t>(last)].coefficient < 16;
      return small ? largest : last;
    };
    if (dot >= 0) {
      for (std::size_t j = 0; j < extent.size(); ++j)
        if (merged_group[j] == 0 || (merged_group[j] < 3 && static_cast<int>(j) != major_of(merged_group[j])))
          order.emplace_back(static_cast<int>(j), 0);
      order.emplace_back(major_of(1), 1);
      order.emplace_back(major_of(2), 2);
      k.kept = static_cast<std::int8_t>(order.size());
    } else {
      for (std::size_t j = 0; j < extent.size(); ++j)
        if (merged_group[j] == 0) order.emplace_back(static_cast<int>(j), 0);
      if (order.empty()) order.emplace_back(-1, 0);
      k.kept = static_cast<std::int8_t>(order.size());
    }
    const int inner = dot >= 0 ? major_of(3) : -1;
    bool any = inner >= 0;
    for (std::size_t j = 0; j < extent.size(); ++j)
      if (merged_group[j] == 3 && static_cast<int>(j) != inner) {
        order.emplace_back(static_cast<int>(j), 3);
        any = true;
      }
    if (inner >= 0) order.emplace_back(inner, 3);
    if (!any && (dot >= 0 || d.reduced != 0)) order.emplace_back(-1, 3);
    k.reduced = static_cast<std::int8_t>(order.size() - static_cast<std::size_t>(k.kept));
    if (order.size() > max_rank) throw "typegrad: a kernel with more than eight axes";
    for (std::size_t j = 0; j < order.size(); ++j) {
      const int at = order[j].first;
      k.extents[j] = at < 0 ? Dim(1) : extent[static_cast<std::size_t>(at)];
    }
    for (std::size_t o = 0; o < d.operands.size(); ++o) {
      d.operands[o].strides = {};
      for (std::size_t j = 0; j < order.size(); ++j)
        if (order[j].first >= 0) d.operands[o].strides[j] = stride[o][static_cast<std::size_t>(order[j].first)];
    }
    emit(k, d);
  }

  // ---- copies -----------------------------------------------------------------------------------------------------

  constexpr AxisMap identity(const Shape& s) const {
    AxisMap m;
    for (int i = 0; i < s.rank; ++i) m[i] = static_cast<std::int8_t>(i);
    return m;
  }

  // Writes the node's value, read through its views, to a layout of its own shape.
  constexpr void copy(int id, const Location& to, const Layout& layout) {
    Draft d;
    const Shape& s = g_.shape(id);
    d.iteration = s;
    const int value = value_of(d, -2, id, identity(s));
    Instruction w;
    w.code = Code::Store;
    w.dtype = g_[id].dtype;
    w.a = static_cast<std::int16_t>(value);
    Offset offset = to.offset;
    for (const Dim& t : layout.offset.terms) offset.add(t);
    w.slot = static_cast<std::int16_t>(operand(d, to.buffer, w.dtype, offset, layout, s, identity(s)));
    push(d, w);
    finish(d, KernelKind::Map, -1, id);
  }
  constexpr void copy_whole(int id, int buffer) { copy(id, {buffer, {}}, row_major(id, g_.shape(id))); }

  constexpr void lower_composite(int id) {
    const Node& n = g_[id];
    const Shape& s = g_.shape(id);
    Layout whole = row_major(id, s);
    if (n.op == Op::Concat) {
      for (int a = 0; a < 2; ++a) {
        const int x = n.in[static_cast<std::size_t>(a)];
        if (placed_[static_cast<std::size_t>(x)] && location(view_base(x)).buffer == location(id).buffer) continue;
        Layout part = whole;
        if (a == 1) part.offset.add(g_.shape(n.in[0])[static_cast<int>(n.attribute)] * whole.stride(static_cast<int>(n.attribute)));
        copy(x, location(id), part);
      }
      return;
    }
    // Pad: zeros everywhere, then the operand over them.
    Draft d;
    d.iteration = s;
    Instruction zero;
    zero.code = Code::Literal;
    zero.dtype = n.dtype;
    zero.row = true;
    push(d, zero);
    store(d, id, 0, location(id), identity(s));
    finish(d, KernelKind::Map, -1, id);
    const AttributeList& p = g_.list(id);
    Layout inner = whole;
    for (int i = 0; i < s.rank; ++i) {
      inner.offset.add(Dim(p[i]) * whole.stride(i));
      inner.stride(i) = Dim(p[s.rank + i]) * whole.stride(i);
    }
    copy(n.in[0], location(id), inner);
  }

  constexpr void find_lifetimes() {
    for (std::size_t k = 0; k < p_.kernels.size(); ++k)
      for (int o = 0; o < p_.kernels[k].operands; ++o) {
        const int b = p_.operands[static_cast<std::size_t>(p_.kernels[k].first_operand + o)].buffer;
        if (b < 0) continue;
        PlanBuffer& buffer = p_.buffers[static_cast<std::size_t>(b)];
        if (buffer.first < 0) buffer.first = static_cast<std::int32_t>(k);
        buffer.last = static_cast<std::int32_t>(k);
      }
  }

  const Graph& g_;
  const Clusters& c_;
  Plan p_;
  std::vector<Location> locations_;
  std::vector<int> owner_, first_member_, members_;
  std::vector<char> placed_;
  std::vector<int> order_;
  std::vector<std::pair<int, int>> copies_;       // outputs that are copied to their buffer at the end
  std::vector<std::pair<int, int>> leaf_copies_;  // inputs and constants that are outputs: copied before all else
  int own_leaf_ = -1;                             // the leaf that is being written
};

}  // namespace detail

constexpr Plan lower(const Graph& g, const Clusters& c) { return detail::Lowerer(g, c).take(); }

}  // namespace tg
