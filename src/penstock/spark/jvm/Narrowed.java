package io.penstock;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import scala.collection.immutable.Seq;

/**
 * The target of a statement, narrowed to rows that its source can meet: the keys of the source are asked for first, and
 * become a filter on the target, so that only files that may have them are planned.
 */
public class Narrowed extends Change {
  private static final int MOST_VALUES = 10000; // of a filter: more are put into ranges, which Spark plans much faster
  private static final int MOST_RANGES = 16;
  private int mostKeys = 100000; // of more, only the range is asked for
  private final SparkSession session;
  private final String name; // of the table that is written
  private final ArrayList kept = new ArrayList(); // sources that are computed once for both passes
  private final IdentityHashMap sources = new IdentityHashMap(); // their rows
  private LogicalPlan many; // a source that is known to have more rows than keys are asked for

  public Narrowed(SparkSession session, String name) {
    this.session = session;
    this.name = name;
  }

  /** The rows of a target that can meet a source: columns of the one, by their names, and those of the other. */
  public static Dataset among(Dataset target, List names, Dataset source, int mostKeys) {
    SparkSession session = (SparkSession) target.sparkSession();
    LogicalPlan rows = target.queryExecution().analyzed();
    Seq keys = source.queryExecution().analyzed().output();
    ArrayList ours = new ArrayList();
    ArrayList theirs = new ArrayList();
    for (int i = 0; i < rows.output().size(); i++) {
      Attribute own = (Attribute) rows.output().apply(i);
      int place = names.indexOf(own.name());
      if (place >= 0 && isKey(own.dataType())) {
        ours.add(own);
        theirs.add(keys.apply(place));
      }
    }
    Narrowed narrowed = new Narrowed(session, null);
    narrowed.mostKeys = mostKeys;
    Expression filter = ours.isEmpty() ? null : narrowed.filter(source, ours, theirs, new HashSet());
    return filter == null ? target : Dataset$.MODULE$.ofRows(session, new Filter(filter, rows));
  }

  /** A plan whose joins read less of the table that is written. */
  public LogicalPlan plan(LogicalPlan plan) {
    return (LogicalPlan) plan.transformDown(this);
  }

  /** Give the memory back that sources took. */
  public void close() {
    for (Object rows : kept) {
      ((Dataset) rows).unpersist();
    }
  }

  public Object change(Object node) {
    if (node instanceof Filter && isTarget(((Filter) node).child())) {
      return byQuery((Filter) node);
    }
    if (!(node instanceof Join) || ((Join) node).condition().isEmpty()) {
      return null;
    }
    Join join = (Join) node;
    String kind = join.joinType().sql();
    boolean left = kind.equals("INNER") || kind.equals("RIGHT OUTER") || kind.equals("LEFT SEMI");
    boolean right = kind.equals("INNER") || kind.equals("LEFT OUTER") || kind.equals("LEFT ANTI");
    if (left && isTarget(join.left())) {
      LogicalPlan target = narrowed(join, join.left(), join.right());
      return target == null ? null : Copies.with(join, 0, target);
    }
    if (right && isTarget(join.right())) {
      LogicalPlan target = narrowed(join, join.right(), join.left());
      return target == null ? null : Copies.with(join, 1, target);
    }
    return null;
  }

  /** `… WHERE key IN (SELECT …)` of a query that does not depend on the row. */
  private LogicalPlan byQuery(Filter filter) {
    for (Object part : parts(filter.condition(), new ArrayList())) {
      if (part instanceof InSubquery && ((InSubquery) part).values().size() == 1
          && ((InSubquery) part).query().outerAttrs().isEmpty()) {
        Expression own = (Expression) ((InSubquery) part).values().apply(0);
        LogicalPlan query = (LogicalPlan) (Object) ((InSubquery) part).query().plan();
        if (own.deterministic() && !own.references().isEmpty() && isKey(own.dataType()) && query.deterministic()) {
          Expression among = filter(
              rowsOf(query), Arrays.asList(own), Arrays.asList(query.output().apply(0)), new HashSet());
          return among == null ? null : new Filter(filter.condition(), filtered(filter.child(), among));
        }
      }
    }
    return null;
  }

  /** The rows of a source, computed once for both passes where that is not cheap. */
  Dataset rowsOf(LogicalPlan source) {
    if (sources.containsKey(source)) {
      return (Dataset) sources.get(source);
    }
    Dataset rows = Dataset$.MODULE$.ofRows(session, source);
    if (!isCheap(source)) {
      rows.persist();
      kept.add(rows);
    }
    sources.put(source, rows);
    return rows;
  }

  /** A source has more rows than its keys are asked for. */
  void hasMany(LogicalPlan source) {
    many = source;
  }

  SparkSession session() {
    return session;
  }

  /** Whether a side is the table that is written, and nothing else. */
  private boolean isTarget(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Project || below instanceof Filter || below instanceof SubqueryAlias) {
      below = (LogicalPlan) below.children().apply(0);
    }
    LakeTable table = LakeRule.table(below);
    return table != null && table.name().equals(name);
  }

  private LogicalPlan narrowed(Join join, LogicalPlan target, LogicalPlan source) {
    ArrayList ours = new ArrayList();
    ArrayList theirs = new ArrayList();
    HashSet nullSafe = new HashSet();
    for (Object part : parts((Expression) join.condition().get(), new ArrayList())) {
      boolean isSafe = part instanceof EqualNullSafe;
      if (!(part instanceof EqualTo) && !isSafe) {
        continue;
      }
      Expression a = (Expression) ((Expression) part).children().apply(0);
      Expression b = (Expression) ((Expression) part).children().apply(1);
      boolean isStraight = a.references().subsetOf(target.outputSet()) && b.references().subsetOf(source.outputSet());
      boolean isCrossed = b.references().subsetOf(target.outputSet()) && a.references().subsetOf(source.outputSet());
      Expression own = isStraight ? a : b;
      Expression other = isStraight ? b : a;
      if ((isStraight || isCrossed) && !own.references().isEmpty() && own.deterministic() && other.deterministic()
          && isKey(own.dataType()) && !PlannedFiles.waits(own) && !PlannedFiles.waits(other)) {
        if (isSafe) {
          nullSafe.add(Integer.valueOf(ours.size()));
        }
        ours.add(own);
        theirs.add(other);
      }
    }
    if (ours.isEmpty()) {
      return null;
    }
    Expression filter = filter(rowsOf(source), ours, theirs, nullSafe);
    return filter == null ? null : filtered(target, filter);
  }

  /** A filter right above the table: Spark does not push one through the row numbers that it gives to a merge's target. */
  private static LogicalPlan filtered(LogicalPlan plan, Expression filter) {
    if (plan instanceof DataSourceV2Relation || !filter.references().subsetOf(((LogicalPlan) plan.children().apply(0)).outputSet())) {
      return new Filter(filter, plan);
    }
    return (LogicalPlan) plan.withNewChildren(Seqs.seq(filtered((LogicalPlan) plan.children().apply(0), filter)));
  }

  /** What rows of the target fulfil that the source can meet; null when nothing can be said. */
  private Expression filter(Dataset rows, List ours, List theirs, HashSet nullSafe) {
    ArrayList columns = new ArrayList();
    for (int i = 0; i < theirs.size(); i++) {
      columns.add(new Alias((Expression) theirs.get(i), "key" + i, NamedExpression$.MODULE$.newExprId(),
          Seqs.seq(), scala.Option.empty(), Seqs.seq()));
    }
    LogicalPlan keys = new Project(Seqs.seqOf(columns), rows.queryExecution().analyzed());
    Dataset all = Dataset$.MODULE$.ofRows(session, keys);
    boolean isMany = many != null && sources.get(many) == rows;
    InternalRow[] rowsOfKeys = isMany ? new InternalRow[0] : collect(all.limit(mostKeys + 1));
    if (isMany || rowsOfKeys.length > mostKeys) { // only then is it worth a shuffle to know which are the same
      rowsOfKeys = collect(all.distinct().limit(mostKeys + 1));
    }
    Expression filter = null;
    for (int i = 0; i < ours.size(); i++) {
      Expression own = (Expression) ours.get(i);
      DataType type = ((Expression) theirs.get(i)).dataType();
      if (!own.dataType().equals(type)) {
        continue;
      }
      Expression part = rowsOfKeys.length > mostKeys
          ? range(own, keys, i, type) : among(own, rowsOfKeys, i, type);
      if (part != null && nullSafe.contains(Integer.valueOf(i))) {
        part = new Or(new IsNull(own), part);
      }
      filter = part == null ? filter : filter == null ? part : new And(filter, part);
    }
    return filter;
  }

  private static Expression among(Expression own, InternalRow[] rows, int place, DataType type) {
    HashMap literals = new HashMap();
    for (int i = 0; i < rows.length; i++) {
      if (!rows[i].isNullAt(place)) {
        Object value = rows[i].get(place, type);
        literals.put(value, new Literal(value, type));
      }
    }
    if (literals.size() > MOST_VALUES) {
      return ranges(own, new ArrayList(literals.keySet()), type);
    }
    return literals.isEmpty() ? Literal.FalseLiteral() : new In(own, Seqs.seqOf(new ArrayList(literals.values())));
  }

  /** Ranges that have all values, and none of the widest gaps between them; of what has no distances, one. */
  private static Expression ranges(Expression own, ArrayList values, DataType type) {
    java.util.Collections.sort(values);
    long most = 0; // the widest of the gaps that do not end a range, as an unsigned number
    int last = values.size() - 1;
    boolean hasGaps = values.get(0) instanceof Number;
    if (hasGaps) {
      Long[] gaps = new Long[last];
      for (int i = 0; i < last; i++) {
        gaps[i] = Long.valueOf(gap(values, i) + Long.MIN_VALUE); // signed numbers in the order of unsigned ones
      }
      Arrays.sort(gaps);
      most = gaps[last - MOST_RANGES].longValue() - Long.MIN_VALUE;
    }
    Expression all = null;
    int start = 0;
    for (int i = 0; i <= last; i++) {
      if (i == last || hasGaps && Long.compareUnsigned(gap(values, i), most) > 0) {
        Expression part = between(own, values.get(start), values.get(i), type);
        all = all == null ? part : new Or(all, part);
        start = i + 1;
      }
    }
    return all;
  }

  private static long gap(ArrayList values, int place) {
    return ((Number) values.get(place + 1)).longValue() - ((Number) values.get(place)).longValue();
  }

  private static Expression between(Expression own, Object low, Object high, DataType type) {
    return new And(new GreaterThanOrEqual(own, new Literal(low, type)), new LessThanOrEqual(own, new Literal(high, type)));
  }

  private Expression range(Expression own, LogicalPlan keys, int place, DataType type) {
    Dataset all = Dataset$.MODULE$.ofRows(session, keys);
    String name = "key" + place;
    InternalRow ends = collect(all.selectExpr(new String[] {"min(" + name + ")", "max(" + name + ")"}))[0];
    return ends.isNullAt(0) ? null : between(own, ends.get(0, type), ends.get(1, type), type);
  }

  static InternalRow[] collect(Dataset rows) {
    return (InternalRow[]) rows.queryExecution().executedPlan().executeCollect();
  }

  static List parts(Expression condition, List parts) {
    if (condition instanceof And) {
      parts(((And) condition).left(), parts);
      return parts(((And) condition).right(), parts);
    }
    parts.add(condition);
    return parts;
  }

  /** Types whose equality is that of their values: floats have two zeros. */
  static boolean isKey(DataType type) {
    return type.equals(DataTypes.StringType) || type.equals(DataTypes.IntegerType) || type.equals(DataTypes.LongType)
        || type.equals(DataTypes.ShortType) || type.equals(DataTypes.ByteType) || type.equals(DataTypes.DateType)
        || type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType)
        || type.equals(DataTypes.BooleanType) || type instanceof DecimalType;
  }

  /** Whether a source may be computed twice. */
  private static boolean isCheap(LogicalPlan plan) {
    boolean isOne = plan instanceof Project || plan instanceof Filter || plan instanceof SubqueryAlias
        || plan instanceof View || plan instanceof LocalRelation || plan instanceof LogicalRelation
        || plan instanceof DataSourceV2Relation;
    if (!isOne || !plan.deterministic()) {
      return false;
    }
    Seq children = plan.children();
    for (int i = 0; i < children.size(); i++) {
      if (!isCheap((LogicalPlan) children.apply(i))) {
        return false;
      }
    }
    return true;
  }
}
