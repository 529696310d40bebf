// fuse: decides which nodes are computed in one kernel. Graph -> Clusters.
//
// Nodes are visited from the outputs to the inputs. A node whose users all lie in one cluster joins it (which can
// close no cycle); a reduction turns an element-wise cluster into one that works row by row; a contraction takes the
// element-wise cluster that consumes it as its epilogue. A node with users in several clusters joins the first of
// them that does not depend on the others and is stored there; otherwise it starts a cluster of its own.
#pragma once

#include <vector>

#include "typegrad/passes/layout.hpp"

namespace tg {

// How the axes of a node lie in the iteration space of its cluster.
struct AxisMap {
  static constexpr std::int8_t unit = 8;      // unit + a: extent 1 where the iteration has axis a
  static constexpr std::int8_t nowhere = 16;  // extent 1, no axis of the iteration
  std::array<std::int8_t, max_rank> axis{};
  constexpr std::int8_t& operator[](int i) { return axis[static_cast<std::size_t>(i)]; }
  constexpr const std::int8_t& operator[](int i) const { return axis[static_cast<std::size_t>(i)]; }
  constexpr bool operator==(const AxisMap&) const = default;
};

enum class ClusterKind : std::uint8_t { Loop, Contract, Composite, Routine };

struct Cluster {
  ClusterKind kind = ClusterKind::Loop;
  int root = -1;
  Shape iteration;           // kept and reduced axes
  std::int64_t reduced = 0;  // mask over the iteration's axes
  bool column = false;       // the axis that is contiguous in memory is kept: one pass over the reduced axes
  int dot = -1;
};

struct Clusters {
  std::vector<Cluster> clusters;
  std::vector<std::int32_t> cluster_of;  // node -> cluster, -1 for leaves and views that are read through
  std::vector<AxisMap> map_of;           // node -> its place in its cluster's iteration
  std::vector<char> stored;              // node -> whether its value is written to memory
};

namespace detail {

class Fuser {
 public:
  constexpr explicit Fuser(const Graph& g) : g_(g) {
    const std::size_t n = g.nodes.size();
    r_.cluster_of.assign(n, -1);
    r_.map_of.resize(n);
    r_.stored.assign(n, 0);
    use_cluster_.assign(n, none);
    use_map_.resize(n);
    users_.resize(n);
    must_store_.assign(n, 0);
    materialised_.assign(n, 0);
    fanout_.assign(n, 0);
    for (const Node& node : g.nodes)
      for (int a = 0; a < arity(node.op); ++a) ++fanout_[static_cast<std::size_t>(node.in[static_cast<std::size_t>(a)])];
    for (int o : g.outputs) must_store_[static_cast<std::size_t>(o)] = 1;
    for (int id = g.size() - 1; id >= 0; --id) visit(id);
  }
  constexpr Clusters take() { return std::move(r_); }

  // The operand's map given the view's; false where the view is not a renaming of axes.
  static constexpr bool through(const Graph& g, int id, const AxisMap& m, AxisMap& out) {
    const Node& n = g[id];
    const Shape &s = g.shape(id), &from = g.shape(n.in[0]);
    switch (n.op) {
      case Op::Broadcast:
        for (int i = 1; i <= from.rank; ++i) {
          const std::int8_t a = m[s.rank - i];
          const bool widened = from[from.rank - i].is(1) && !s[s.rank - i].is(1);
          out[from.rank - i] = widened && a < AxisMap::unit ? static_cast<std::int8_t>(AxisMap::unit + a) : a;
        }
        return true;
      case Op::Transpose: {
        const AttributeList& p = g.list(id);
        for (int i = 0; i < s.rank; ++i) out[static_cast<int>(p[i])] = m[i];
        return true;
      }
      case Op::Reshape: {
        int i = 0;
        for (int j = 0; j < from.rank; ++j) {
          if (from[j].is(1)) {
            // A unit axis keeps its place if the view has one there, too.
            out[j] = i < s.rank && s[i].is(1) ? m[i++] : AxisMap::nowhere;
            continue;
          }
          while (i < s.rank && s[i].is(1)) ++i;
          if (i == s.rank || !(s[i] == from[j])) return false;
          out[j] = m[i++];
        }
        for (; i < s.rank; ++i)
          if (!s[i].is(1)) return false;
        return true;
      }
      default: return false;
    }
  }

 private:
  static constexpr int none = -1, several = -2;

  struct User {
    int cluster;
    AxisMap map;
    bool computes;  // false: it reads the node from memory
  };

  constexpr Cluster& cluster(int c) { return r_.clusters[static_cast<std::size_t>(c)]; }

  constexpr void visit(int id) {
    const std::size_t i = static_cast<std::size_t>(id);
    const Node& n = g_[id];
    if (use_cluster_[i] == none && !must_store_[i]) return;
    switch (info(n.op).kind) {
      case OpKind::leaf:
        if (materialised_[i]) start(id);  // one that is returned is copied when all is lowered
        return;
      case OpKind::view: return visit_view(id);
      case OpKind::structural: {
        const int c = new_cluster(id, ClusterKind::Composite);
        r_.stored[i] = 1;
        for (int a = 0; a < arity(n.op); ++a) require_stored(n.in[static_cast<std::size_t>(a)], c);
        return;
      }
      case OpKind::routine: {
        const int c = new_cluster(id, ClusterKind::Routine);
        r_.cluster_of[i] = c;
        r_.stored[i] = 1;
        for (int a = 0; a < arity(n.op); ++a) require_row_major(n.in[static_cast<std::size_t>(a)], c);
        return;
      }
      case OpKind::indexed:
      case OpKind::elementwise: {
        if (const int c = joinable(id); c >= 0) return join(id, c, use_map_[i]);
        return start(id);
      }
      case OpKind::reduction: {
        if (const int c = joinable(id); c >= 0 && join_reduction(id, c)) return;
        return start(id);
      }
      case OpKind::contraction: {
        if (const int c = joinable(id); c >= 0 && cluster(c).kind == ClusterKind::Loop && cluster(c).reduced == 0 &&
                                        !must_store_[i] && use_cluster_[i] >= 0 && is_identity(id, c)) {
          cluster(c).kind = ClusterKind::Contract;
          cluster(c).dot = id;
          return join(id, c, use_map_[i]);
        }
        return start(id);
      }
    }
  }

  // A view costs nothing where it is read: it passes its user's map on, or is looked through when it is loaded.
  constexpr void visit_view(int id) {
    const std::size_t i = static_cast<std::size_t>(id);
    if (must_store_[i]) return start(id);
    const int x = g_[id].in[0];
    AxisMap m;
    if (use_cluster_[i] >= 0 && through(g_, id, use_map_[i], m)) {
      r_.cluster_of[i] = use_cluster_[i];
      r_.map_of[i] = use_map_[i];
      return use(x, use_cluster_[i], m);
    }
    if (view_layout(g_, id, [&](int v) { return v != id && must_store_[static_cast<std::size_t>(v)] != 0; }).base < 0)
      must_store_[static_cast<std::size_t>(x)] = 1;
    for (const User& u : users_[i]) {
      if (u.computes && through(g_, id, u.map, m)) use(x, u.cluster, m);
      else require_stored(x, u.cluster);
    }
  }

  constexpr void use(int id, int c, const AxisMap& m) {
    const std::size_t i = static_cast<std::size_t>(id);
    if (use_cluster_[i] == none) {
      use_cluster_[i] = c;
      use_map_[i] = m;
    } else if (use_cluster_[i] != c || !(use_map_[i] == m)) {
      use_cluster_[i] = several;
    }
    add_user(id, c, m, true);
  }
  // The cluster reads the node from memory: the operand of a contraction, or through a view that is no renaming.
  constexpr void require_stored(int id, int c) {
    use_cluster_[static_cast<std::size_t>(id)] = several;
    if (!is_view(g_[id].op)) must_store_[static_cast<std::size_t>(id)] = 1;
    if (g_[id].op == Op::Iota) materialised_[static_cast<std::size_t>(id)] = 1;
    add_user(id, c, {}, false);
  }
  // The cluster reads the node from memory and takes its elements to lie one after the other.
  constexpr void require_row_major(int id, int c) {
    const Layout l = view_layout(g_, id, [&](int v) { return must_store_[static_cast<std::size_t>(v)] != 0; });
    if (l.base < 0 || !is_row_major(l, g_.shape(id))) must_store_[static_cast<std::size_t>(id)] = 1;
    require_stored(id, c);
    materialise(id);
  }
  // A constant behind views is written to memory.
  constexpr void materialise(int id) {
    while (is_view(g_[id].op)) id = g_[id].in[0];
    if (g_[id].op == Op::Constant) materialised_[static_cast<std::size_t>(id)] = 1;
  }
  constexpr void add_user(int id, int c, const AxisMap& m, bool computes) {
    for (User& u : users_[static_cast<std::size_t>(id)])
      if (u.cluster == c) {
        u.computes = u.computes && computes && u.map == m;
        return;
      }
    users_[static_cast<std::size_t>(id)].push_back({c, m, computes});
  }

  // The cluster the node may become part of: that of all its users, or one of several that depends on none of the
  // others and where the node can be stored. Sets use_map_ to its place there.
  constexpr int joinable(int id) {
    const std::size_t i = static_cast<std::size_t>(id);
    if (use_cluster_[i] >= 0) {
      const int c = use_cluster_[i];
      if (must_store_[i] && !storable(cluster(c), use_map_[i], g_.shape(id))) return -1;
      if (is_widened_and_dear(id, c, use_map_[i])) return -1;
      return c;
    }
    // What follows a contraction is better stored as its epilogue.
    if (use_cluster_[i] != several || follows_dot(id, 4)) return -1;
    for (const User& u : users_[i]) {
      if (!u.computes || !storable(cluster(u.cluster), u.map, g_.shape(id))) continue;
      bool first = true;
      for (const User& v : users_[i]) first = first && (v.cluster == u.cluster || !reaches(v.cluster, u.cluster));
      if (!first) continue;
      use_map_[i] = u.map;
      must_store_[i] = 1;
      return u.cluster;
    }
    return -1;
  }

  constexpr bool follows_dot(int id, int depth) const {
    const Node& n = g_[id];
    if (n.op == Op::Dot) return true;
    if (depth == 0 || !(is_elementwise(n.op) || is_view(n.op))) return false;
    for (int a = 0; a < arity(n.op); ++a) {
      const int x = n.in[static_cast<std::size_t>(a)];
      if (fanout_[static_cast<std::size_t>(x)] == 1 && follows_dot(x, depth - 1)) return true;
    }
    return false;
  }

  // Whether data flows from cluster a to cluster b.
  constexpr bool reaches(int a, int b) const {
    const auto& set = downstream_[static_cast<std::size_t>(a)];
    const std::size_t word = static_cast<std::size_t>(b) / 64;
    return word < set.size() && ((set[word] >> (b % 64)) & 1) != 0;
  }
  constexpr void add_downstream(int a, int b) {
    auto& set = downstream_[static_cast<std::size_t>(a)];
    const auto& theirs = downstream_[static_cast<std::size_t>(b)];
    const std::size_t word = static_cast<std::size_t>(b) / 64;
    if (set.size() <= word) set.resize(word + 1, 0);
    set[word] |= std::uint64_t{1} << (b % 64);
    if (set.size() < theirs.size()) set.resize(theirs.size(), 0);
    for (std::size_t w = 0; w < theirs.size(); ++w) set[w] |= theirs[w];
  }
  // The users of a node that is now stored by cluster c follow c, and so all that follow them.
  constexpr void link_users(int id, int c) {
    bool grown = false;
    for (const User& u : users_[static_cast<std::size_t>(id)])
      if (u.cluster != c && !reaches(c, u.cluster)) {
        add_downstream(c, u.cluster);
        grown = true;
      }
    if (!grown) return;
    for (int a = 0; a < static_cast<int>(r_.clusters.size()); ++a)
      if (a != c && reaches(a, c)) add_downstream(a, c);
  }

  // Recomputing a transcendental function for every element of a larger iteration costs more than a small kernel.
  constexpr bool is_widened_and_dear(int id, int c, const AxisMap& m) {
    const Cluster& k = cluster(c);
    if (!is_transcendental(g_[id].op) || k.reduced != 0) return false;
    return !storable(k, m, g_.shape(id));
  }

  // Whether the node's elements correspond one to one to the iteration, or to its kept axes, so that the cluster can
  // write them. A pass over columns writes results only.
  static constexpr bool storable(const Cluster& k, const AxisMap& m, const Shape& s) {
    if (k.kind == ClusterKind::Composite || k.kind == ClusterKind::Routine) return false;
    std::int64_t seen = 0;
    for (int i = 0; i < s.rank; ++i)
      if (m[i] < AxisMap::unit && !s[i].is(1)) seen |= std::int64_t{1} << m[i];
    std::int64_t all = 0, kept = 0;
    for (int i = 0; i < k.iteration.rank; ++i) {
      if (k.iteration[i].is(1)) continue;
      all |= std::int64_t{1} << i;
      if (!((k.reduced >> i) & 1)) kept |= std::int64_t{1} << i;
    }
    return seen == kept || (seen == all && !k.column);
  }

  constexpr bool is_identity(int id, int c) {
    const Shape& s = g_.shape(id);
    if (!(cluster(c).iteration == s)) return false;
    for (int i = 0; i < s.rank; ++i)
      if (use_map_[static_cast<std::size_t>(id)][i] != i) return false;
    return true;
  }

  constexpr int new_cluster(int id, ClusterKind kind) {
    Cluster c;
    c.kind = kind;
    c.root = id;
    c.iteration = g_.shape(id);
    r_.clusters.push_back(c);
    downstream_.emplace_back();
    const int index = static_cast<int>(r_.clusters.size()) - 1;
    for (const User& u : users_[static_cast<std::size_t>(id)]) add_downstream(index, u.cluster);  // nothing reaches a new cluster
    return index;
  }

  constexpr void start(int id) {
    const Node& n = g_[id];
    const int c = new_cluster(id, n.op == Op::Dot ? ClusterKind::Contract : ClusterKind::Loop);
    AxisMap identity;
    for (int i = 0; i < g_.shape(id).rank; ++i) identity[i] = static_cast<std::int8_t>(i);
    r_.stored[static_cast<std::size_t>(id)] = 1;
    if (n.op == Op::Dot) cluster(c).dot = id;
    if (is_reduction(n.op)) {
      const Shape& from = g_.shape(n.in[0]);
      cluster(c).iteration = from;
      cluster(c).reduced = n.attribute;
      cluster(c).column = !reduces_last(from, n.attribute);
      for (int i = 0; i < max_rank; ++i)
        if ((n.attribute >> i) & 1) identity[i] = static_cast<std::int8_t>(AxisMap::unit + i);
    }
    place(id, c, identity);
  }

  constexpr void join(int id, int c, const AxisMap& m) {
    if (must_store_[static_cast<std::size_t>(id)]) r_.stored[static_cast<std::size_t>(id)] = 1;
    link_users(id, c);
    place(id, c, m);
  }

  // The node is computed in the cluster; its operands are used there.
  constexpr void place(int id, int c, const AxisMap& m) {
    const Node& n = g_[id];
    r_.cluster_of[static_cast<std::size_t>(id)] = c;
    r_.map_of[static_cast<std::size_t>(id)] = m;
    if (n.op == Op::Dot) {
      for (int a = 0; a < 2; ++a) {
        require_stored(n.in[static_cast<std::size_t>(a)], c);
        materialise(n.in[static_cast<std::size_t>(a)]);
      }
      return;
    }
    if (n.op == Op::Gather) {
      require_row_major(n.in[0], c);
      return use(n.in[1], c, m);
    }
    AxisMap inner = m;
    if (is_view(n.op)) {
      if (!through(g_, id, m, inner)) {
        if (view_layout(g_, id, [&](int v) { return v != id && must_store_[static_cast<std::size_t>(v)] != 0; }).base < 0)
          must_store_[static_cast<std::size_t>(n.in[0])] = 1;
        return require_stored(n.in[0], c);
      }
    } else if (is_reduction(n.op)) {
      for (int i = 0; i < max_rank; ++i)
        if ((n.attribute >> i) & 1) inner[i] = static_cast<std::int8_t>(m[i] - AxisMap::unit);
    }
    for (int a = 0; a < arity(n.op); ++a) use(n.in[static_cast<std::size_t>(a)], c, inner);
  }

  // Whether the last axis of more than one element is among those reduced: it is the contiguous one.
  static constexpr bool reduces_last(const Shape& s, std::int64_t axes) {
    for (int i = s.rank - 1; i >= 0; --i)
      if (!s[i].is(1)) return ((axes >> i) & 1) != 0;
    return true;
  }

  constexpr bool join_reduction(int id, int c) {
    Cluster k = cluster(c);
    if (k.kind != ClusterKind::Loop) return false;
    const Node& n = g_[id];
    const Shape& from = g_.shape(n.in[0]);
    AxisMap m = use_map_[static_cast<std::size_t>(id)];
    // A reduced axis lies where the result is broadcast back; where it is not, behind the other axes.
    std::int64_t axes = 0;
    bool broadcast_back = false;
    for (int i = 0; i < from.rank; ++i) {
      if (!((n.attribute >> i) & 1)) continue;
      int at = -1;
      if (m[i] < AxisMap::unit) {
        at = m[i];  // the root itself has this axis with extent 1
      } else if (m[i] < AxisMap::nowhere) {
        at = m[i] - AxisMap::unit;
      } else {
        for (int j = 0; j < k.iteration.rank && at < 0; ++j)
          if (((k.reduced >> j) & 1) && !((axes >> j) & 1) && k.iteration[j] == from[i] && !lies_on(from, m, j)) at = j;
        if (at < 0) {
          if (k.iteration.rank == max_rank) return false;
          k.iteration.push(1);
          at = k.iteration.rank - 1;
        }
      }
      if ((axes >> at) & 1) return false;
      axes |= std::int64_t{1} << at;
      if (k.iteration[at].is(1)) k.iteration[at] = from[i];
      else if (!(k.iteration[at] == from[i])) return false;
      else if (!((k.reduced >> at) & 1)) broadcast_back = true;
      m[i] = static_cast<std::int8_t>(AxisMap::unit + at);
    }
    if (k.reduced != 0 && axes != k.reduced) return false;
    // Kept axes must be whole, or the reduction would be computed again for elements that share it.
    std::int64_t kept = 0;
    Dim rows = 1;
    for (int i = 0; i < from.rank; ++i)
      if (!((n.attribute >> i) & 1) && !from[i].is(1)) {
        if (m[i] >= AxisMap::unit) return false;
        kept |= std::int64_t{1} << m[i];
      }
    Dim length = 1;
    for (int i = 0; i < k.iteration.rank; ++i) {
      if ((axes >> i) & 1) {
        length = length * k.iteration[i];
        continue;
      }
      if (k.iteration[i].is(1)) continue;
      if (!((kept >> i) & 1)) return false;
      rows = rows * k.iteration[i];
    }
    const bool column = !reduces_last(from, n.attribute);
    const bool later_phase = k.reduced != 0 && feeds_elements(id, c, axes);
    const bool long_row = rows.is(1) && !(length.is_static() && length.coefficient <= 4096);
    if (broadcast_back && (column || long_row)) return false;
    if (k.reduced != 0 && (column != k.column || (later_phase && (column || long_row)))) return false;
    k.reduced = axes;
    k.column = column;
    if (must_store_[static_cast<std::size_t>(id)] && !storable(k, m, g_.shape(id))) return false;
    cluster(c) = k;
    join(id, c, m);
    return true;
  }

  static constexpr bool lies_on(const Shape& s, const AxisMap& m, int axis) {
    for (int i = 0; i < s.rank; ++i)
      if (m[i] == axis && !s[i].is(1)) return true;
    return false;
  }

  // Whether something in the cluster that works on every element depends on the reduction, so that another pass follows.
  constexpr bool feeds_elements(int id, int c, std::int64_t reduced) const {
    const int root = r_.clusters[static_cast<std::size_t>(c)].root;
    std::vector<char> depends(static_cast<std::size_t>(root - id + 1), 0);  // by node, from id on
    depends[0] = 1;
    for (int u = id + 1; u <= root; ++u) {
      const Node& n = g_[u];
      const bool inside = r_.cluster_of[static_cast<std::size_t>(u)] == c;
      if (!inside && !is_view(n.op)) continue;  // a view that other clusters use too belongs to none
      bool uses = false;
      for (int a = 0; a < arity(n.op); ++a) {
        const int x = n.in[static_cast<std::size_t>(a)];
        uses = uses || (x >= id && depends[static_cast<std::size_t>(x - id)] != 0);
      }
      if (!uses) continue;
      depends[static_cast<std::size_t>(u - id)] = 1;
      if (inside && is_reduction(n.op)) return true;
      for (int i = 0; inside && i < g_.shape(u).rank; ++i) {
        const std::int8_t a = r_.map_of[static_cast<std::size_t>(u)][i];
        if (a < AxisMap::unit && ((reduced >> a) & 1) && !g_.shape(u)[i].is(1)) return true;
      }
    }
    return false;
  }

  const Graph& g_;
  Clusters r_;
  std::vector<int> use_cluster_;
  std::vector<AxisMap> use_map_;
  std::vector<std::vector<User>> users_;
  std::vector<std::vector<std::uint64_t>> downstream_;  // by cluster: bit set of the clusters that depend on it
  std::vector<char> must_store_;
  std::vector<char> materialised_;  // constants and ramps that a kernel has to read from memory
  std::vector<int> fanout_;
};

}  // namespace detail

// Gives every user its own copy of nodes that cost next to nothing: a comparison or a conversion of inputs and ramps
// is computed again rather than stored and read. So are random numbers, however dear: they need no memory then.
constexpr Graph duplicate_cheap(const Graph& g) {
  Graph r;
  r.shapes = g.shapes;
  r.attributes = g.attributes;
  r.symbols = g.symbols;
  r.donors = g.donors;
  std::vector<char> cheap(g.nodes.size(), 0), leafy(g.nodes.size(), 0), random(g.nodes.size(), 0);
  for (int id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    const std::size_t i = static_cast<std::size_t>(id);
    leafy[i] = info(n.op).kind == OpKind::leaf || ((is_view(n.op) || (is_elementwise(n.op) && info(n.op).flops <= 1) || n.op == Op::RandomBits));
    random[i] = n.op == Op::RandomBits && g.shape(id).rank > 0;
    for (int a = 0; a < arity(n.op); ++a) {
      const std::size_t x = static_cast<std::size_t>(n.in[static_cast<std::size_t>(a)]);
      leafy[i] = leafy[i] && leafy[x];
      random[i] = random[i] || random[x];
    }
    cheap[i] = leafy[i] && info(n.op).kind != OpKind::leaf && (is_view(n.op) || !is_floating(n.dtype) || random[i]);
  }
  std::vector<int> to(g.nodes.size(), -1);
  std::vector<char> taken(g.nodes.size(), 0);
  for (int o : g.outputs) taken[static_cast<std::size_t>(o)] = 1;
  auto copy = [&](auto&& self, int id) -> int {
    Node n = g[id];
    for (int a = 0; a < arity(n.op); ++a) {
      const int x = n.in[static_cast<std::size_t>(a)];
      const bool again = cheap[static_cast<std::size_t>(x)] && taken[static_cast<std::size_t>(x)];
      taken[static_cast<std::size_t>(x)] = 1;
      n.in[static_cast<std::size_t>(a)] = again ? self(self, x) : to[static_cast<std::size_t>(x)];
    }
    return r.push(n);
  };
  for (int id = 0; id < g.size(); ++id) to[static_cast<std::size_t>(id)] = copy(copy, id);
  for (int o : g.outputs) r.outputs.push_back(to[static_cast<std::size_t>(o)]);
  return r;
}

constexpr Clusters fuse(const Graph& g) { return detail::Fuser(g).take(); }

}  // namespace tg
