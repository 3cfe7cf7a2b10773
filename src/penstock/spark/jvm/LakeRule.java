package io.penstock;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * Puts the native scan in the place of a lake's table, and sends statements that change rows to Python: as an append to
 * a table that carries the statement, for an append hands its rows to Python (`LakeWrite`).
 */
public class LakeRule extends Rule {
  private static final String FILE = "file of the row";
  private static final String PLACE = "place of the row";
  private static final String OPERATION = "operation on the row";
  static final int REMOVED = 1; // operations, as Spark numbers them
  static final int ADDED = 3;
  private static final ObjectMapper MAPPER = new ObjectMapper();

  public Object apply(Object plan) {
    return apply((TreeNode) plan);
  }

  public TreeNode apply(TreeNode plan) {
    WriteTarget.clear();
    return replaced((LogicalPlan) plan);
  }

  private static LogicalPlan replaced(LogicalPlan plan) {
    if (plan instanceof DeleteFromTable) { // of all rows: others are in a `WriteDelta`
      return (LogicalPlan) Copies.with(plan, 0, uncached(((DeleteFromTable) plan).table()));
    }
    if (plan instanceof WriteDelta && table((LogicalPlan) (Object) ((WriteDelta) plan).originalTable()) != null) {
      return changes((WriteDelta) plan);
    }
    if (plan instanceof OverwriteByExpression) {
      OverwriteByExpression overwrite = (OverwriteByExpression) plan;
      LakeTable table = table(target(overwrite));
      if (table != null && overwrite.write().isEmpty() && !overwrite.deleteExpr().equals(Literal.TrueLiteral())) {
        return overwrite(overwrite, table);
      }
    }
    if (plan instanceof OverwritePartitionsDynamic) {
      OverwritePartitionsDynamic overwrite = (OverwritePartitionsDynamic) plan;
      LakeTable table = table(target(overwrite));
      if (table != null && overwrite.write().isEmpty()) {
        return carried((DataSourceV2Relation) target(overwrite), table, "dynamic", null, overwrite.query());
      }
    }
    if (plan instanceof AppendData || plan.getClass().getSimpleName().equals("InsertOnlyMerge")) { // from Spark 4.2 on
      V2WriteCommand append = (V2WriteCommand) plan;
      LakeTable table = table(target(append));
      if (table != null && option(append, "write").isEmpty() && insertsNew(append.query(), table)) {
        LogicalPlan query = query(option(append, "analyzedQuery"), append);
        return carried((DataSourceV2Relation) target(append), table, "insert", null, query);
      }
    }
    if (plan instanceof V2WriteCommand && target((V2WriteCommand) plan) instanceof DataSourceV2Relation
        && ((DataSourceV2Relation) target((V2WriteCommand) plan)).table() instanceof LakeTable) {
      return plan; // Spark plans the query again when Python writes its rows
    }
    if (plan instanceof Command && !plan.children().isEmpty() && LakeCommands.isLeftOut((Command) plan)) {
      return new LocalRelation(PlannedFiles.seq(new ArrayList()), PlannedFiles.seq(new ArrayList()), false, scala.Option.empty());
    }
    if (plan instanceof DataSourceV2Relation && table(plan) != null) {
      return scan((DataSourceV2Relation) plan);
    }
    Seq children = plan.children(); // the target of a write is no child
    ArrayList changed = new ArrayList();
    boolean isChanged = false;
    for (int i = 0; i < children.size(); i++) {
      LogicalPlan child = replaced((LogicalPlan) children.apply(i));
      isChanged |= child != children.apply(i);
      changed.add(child);
    }
    if (isChanged && plan instanceof V2WriteCommand) {
      changed.set(0, notNull((LogicalPlan) changed.get(0), ((LogicalPlan) children.apply(0)).output()));
    }
    return isChanged ? (LogicalPlan) plan.withNewChildren(PlannedFiles.seq(changed)) : plan;
  }

  /** The rows for a table of somebody else's that may want to know which columns have no NULL: scans do not say. */
  private static LogicalPlan notNull(LogicalPlan rows, Seq wanted) {
    ArrayList columns = new ArrayList();
    for (int i = 0; i < wanted.size(); i++) {
      AttributeReference column = (AttributeReference) wanted.apply(i);
      Expression value = (Expression) rows.output().apply(i);
      columns.add(value.nullable() && !column.nullable() ? alias(new KnownNotNull(value), column.name(), column) : value);
    }
    return new Project((Seq) PlannedFiles.seq(columns), rows);
  }

  /* `table()` of the class itself has two return types, which Janino does not tell apart. */
  private static LogicalPlan target(V2WriteCommand write) {
    return (LogicalPlan) (Object) write.table();
  }

  /** The table of a relation; null when it is not one of a lake, or only carries a statement. */
  static LakeTable table(LogicalPlan plan) {
    Object table = plan instanceof DataSourceV2Relation ? ((DataSourceV2Relation) plan).table() : null;
    if (table instanceof RowLevelOperationTable) {
      table = ((RowLevelOperationTable) table).table();
    }
    return table instanceof LakeTable && !(table instanceof LakeTable.Carrier) ? (LakeTable) table : null;
  }

  /** An argument that classes have and their interface has not. */
  private static scala.Option option(V2WriteCommand write, String name) {
    try {
      return (scala.Option) write.getClass().getMethod(name, new Class[0]).invoke(write, new Object[0]);
    } catch (ReflectiveOperationException error) {
      return scala.Option.empty();
    }
  }

  /** Whether rows are added that an anti join with the table itself has chosen: what a MERGE with inserts alone is. */
  private static boolean insertsNew(LogicalPlan query, LakeTable target) {
    if (query instanceof Join && ((Join) query).joinType().sql().equals("LEFT ANTI")
        && reads(((Join) query).right(), target)) {
      return true;
    }
    for (int i = 0; i < query.children().size(); i++) {
      if (insertsNew((LogicalPlan) query.children().apply(i), target)) {
        return true;
      }
    }
    return false;
  }

  private static boolean reads(LogicalPlan plan, LakeTable target) {
    LakeTable table = table(plan);
    if (table != null && table.name().equals(target.name())) {
      return true;
    }
    for (int i = 0; i < plan.children().size(); i++) {
      if (reads((LogicalPlan) plan.children().apply(i), target)) {
        return true;
      }
    }
    return false;
  }

  /** The target of a statement, where Spark has put its cached rows in its place. */
  private static LogicalPlan uncached(LogicalPlan plan) {
    if (!(plan instanceof InMemoryRelation)) {
      return plan;
    }
    LogicalPlan cached = ((InMemoryRelation) plan).cacheBuilder().logicalPlan();
    LogicalPlan relation = EliminateSubqueryAliases$.MODULE$.apply(cached);
    return table(relation) == null ? plan : Copies.with(relation, 1, plan.output());
  }

  /** The native scan, under the attributes of the relation; with files, one more column names each row's file. */
  private static LogicalPlan scan(DataSourceV2Relation relation) {
    LakeTable table = table(relation);
    ArrayList hidden = new ArrayList();
    Seq output = relation.output();
    HashMap places = new HashMap();
    for (int i = 0; i < table.schema.size(); i++) {
      places.put(table.schema.fieldNames()[i], Integer.valueOf(i));
    }
    for (int i = 0; i < output.size(); i++) {
      String name = ((Attribute) output.apply(i)).name();
      if (!places.containsKey(name)) {
        places.put(name, Integer.valueOf(places.size()));
        hidden.add(name);
      }
    }
    LogicalPlan rows = rows(table, hidden, relation.options().asCaseSensitiveMap());
    ArrayList columns = new ArrayList();
    for (int i = 0; i < output.size(); i++) {
      AttributeReference wanted = (AttributeReference) output.apply(i);
      int place = ((Integer) places.get(wanted.name())).intValue();
      columns.add(alias((Expression) rows.output().apply(place), wanted.name(), wanted));
    }
    return new Project((Seq) PlannedFiles.seq(columns), rows);
  }

  /** The rows of a table, and behind them some columns that are not in its schema. */
  private static LogicalPlan rows(LakeTable table, ArrayList hidden, Map options) {
    String session = Questions.hold(SparkSession.active());
    try {
      Message message = new Message("read", table.lake).with("handle", table.handle).with("session", session);
      Dataset rows = (Dataset) Questions.drop(Message.text(message.with("hidden", hidden).with("options", options).ask(), "rows"));
      findFieldIds();
      LogicalPlan analyzed = EliminateSubqueryAliases$.MODULE$.apply(rows.queryExecution().analyzed());
      return (LogicalPlan) ReplaceExpressions$.MODULE$.apply(analyzed);
    } finally {
      Questions.drop(session);
    }
  }

  /**
   * Let the tasks of this query find columns by field id too. Spark has taken the settings that they see when the query
   * began; where it was off, Python has switched it on since, and the row reader would read by name without a word.
   */
  private static void findFieldIds() {
    if (SQLConf.get().parquetFieldIdReadEnabled()) {
      SparkSession.active().sparkContext().setLocalProperty(SQLConf.PARQUET_FIELD_ID_READ_ENABLED().key(), "true");
    }
  }

  private static Alias alias(Expression value, String name, AttributeReference wanted) {
    return new Alias(value, name, wanted.exprId(), wanted.qualifier(), scala.Option.empty(), PlannedFiles.seq(new ArrayList()));
  }

  /** The rows that a statement changes, with new values, and the file and place of each that is there already. */
  private static LogicalPlan changes(WriteDelta delta) {
    DataSourceV2Relation relation = (DataSourceV2Relation) (Object) delta.originalTable();
    RowLevelOperationTable target = (RowLevelOperationTable) ((DataSourceV2Relation) target(delta)).table();
    String command = target.operation().command().toString();
    Seq rows = delta.query().output();
    ArrayList columns = new ArrayList();
    add(columns, rows, 0, OPERATION);
    boolean isDelete = command.equals("DELETE");
    Seq own = isDelete ? Seqs.seq() : ((ProjectingInternalRow) delta.projections().rowProjection().get()).colOrdinals();
    for (int i = 0; i < own.size(); i++) {
      add(columns, rows, ((Integer) own.apply(i)).intValue(), table(relation).schema.fieldNames()[i]);
    }
    Seq id = delta.projections().rowIdProjection().colOrdinals();
    add(columns, rows, ((Integer) id.apply(0)).intValue(), FILE);
    add(columns, rows, ((Integer) id.apply(1)).intValue(), PLACE);
    LogicalPlan query = new Project((Seq) PlannedFiles.seq(columns), delta.query());
    query.setAnalyzed(); // its correlated subqueries are rewritten already, which analysis would take for a mistake
    String kind = command.toLowerCase(java.util.Locale.ROOT);
    LakeTable carrier = table(relation).carrying(statement(kind, isDelete ? delta.condition() : null));
    // The target stays a table in what Python executes, so that it can be narrowed, and loaded again.
    LogicalPlan shown = MergeParts.of(query, table(relation), kind) == null ? replaced(query) : nothing(query);
    return Copies.append((DataSourceV2Relation) Copies.with(relation, 0, carrier), shown, query);
  }

  /** No rows in the place of those that may never be computed: Spark would optimize in vain what computes them. */
  private static LogicalPlan nothing(LogicalPlan query) {
    return new LocalRelation(query.output(), PlannedFiles.seq(new ArrayList()), false, scala.Option.empty());
  }

  private static void add(ArrayList columns, Seq rows, int place, String name) {
    columns.add(new Alias((Expression) rows.apply(place), name, NamedExpression$.MODULE$.newExprId(),
        PlannedFiles.seq(new ArrayList()), scala.Option.empty(), PlannedFiles.seq(new ArrayList())));
  }

  private static LogicalPlan overwrite(OverwriteByExpression overwrite, LakeTable table) {
    return carried(
        (DataSourceV2Relation) target(overwrite), table, "overwrite", overwrite.deleteExpr(),
        query(overwrite.analyzedQuery(), overwrite));
  }

  /** The query as it was analyzed; it is optimized when Python writes its rows. */
  private static LogicalPlan query(scala.Option analyzed, V2WriteCommand write) {
    return (LogicalPlan) analyzed.getOrElse(new Value(write.query()));
  }

  private static LogicalPlan carried(
      DataSourceV2Relation relation, LakeTable table, String kind, Expression condition, LogicalPlan query) {
    LakeTable carrier = table.carrying(statement(kind, condition));
    LogicalPlan shown = MergeParts.of(query, table, kind) == null ? query : nothing(query);
    return Copies.append((DataSourceV2Relation) Copies.with(relation, 0, carrier), shown, query);
  }

  private static String statement(String kind, Expression condition) {
    LinkedHashMap statement = new LinkedHashMap();
    statement.put("kind", kind);
    if (condition != null) {
      statement.put("where", PlannedFiles.waits(condition) ? null : Filters.toJson(condition));
      statement.put("text", condition.sql());
    }
    try {
      return MAPPER.writeValueAsString(statement);
    } catch (java.io.IOException error) {
      throw new IllegalStateException(error);
    }
  }

  /** What kind of statement a carrier has. */
  static String kind(String statement) {
    try {
      return Message.text(MAPPER.readTree(statement), "kind");
    } catch (java.io.IOException error) {
      throw new IllegalStateException(error);
    }
  }

  private static class Value extends scala.runtime.AbstractFunction0 {
    private final Object value;

    Value(Object value) {
      this.value = value;
    }

    public Object apply() {
      return value;
    }
  }

  /** Makes the rule for a session. */
  public static class Builder extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) {
      return new LakeRule();
    }
  }
}
