package io.penstock;

import java.util.HashMap;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Hands the rows of a statement to Python, which writes them with Spark and commits. */
public class LakeWrite implements SupportsOverwriteV2, V1Write, InsertableRelation {
  private final String lake;
  private final String handle;
  private final Object table; // as long as it lives, Python knows the handle
  private final String statement;
  private final LogicalWriteInfo info;
  private String mode = "append";

  public LakeWrite(String lake, String handle, Object table, String statement, LogicalWriteInfo info) {
    this.lake = lake;
    this.handle = handle;
    this.table = table;
    this.statement = statement;
    this.info = info;
  }

  public WriteBuilder truncate() {
    mode = "replace";
    return this;
  }

  /** `LakeRule` has sent conditions to Python in another way; what is left is the condition TRUE. */
  public boolean canOverwrite(Predicate[] predicates) {
    return predicates.length == 0;
  }

  public WriteBuilder overwrite(Predicate[] predicates) {
    return truncate();
  }

  public Write build() {
    return this;
  }

  public InsertableRelation toInsertableRelation() {
    return this;
  }

  /** A stream is written by Spark's own Python data sources: tasks write, and the driver commits each batch once. */
  public StreamingWrite toStreaming() {
    HashMap options = new HashMap(info.options().asCaseSensitiveMap());
    Message message = new Message("sink", lake).with("handle", handle).with("mode", mode);
    options.putAll(Message.map(Message.at(message.ask(), "options")));
    PythonDataSourceV2 sink = new PythonDataSourceV2();
    sink.setShortName("penstock");
    SupportsWrite rows = (SupportsWrite) sink.getTable(info.schema(), new Transform[0], options);
    return rows.newWriteBuilder(new Info(info, new CaseInsensitiveStringMap(options))).build().toStreaming();
  }

  private static class Info implements LogicalWriteInfo {
    private final LogicalWriteInfo info;
    private final CaseInsensitiveStringMap options;

    Info(LogicalWriteInfo info, CaseInsensitiveStringMap options) {
      this.info = info;
      this.options = options;
    }

    public CaseInsensitiveStringMap options() {
      return options;
    }

    public String queryId() {
      return info.queryId();
    }

    public StructType schema() {
      return info.schema();
    }
  }

  public String toString() {
    return table.toString();
  }

  public void insert(Dataset rows, boolean overwrite) {
    SparkSession session = (SparkSession) rows.sparkSession();
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
    LakeTable version = (LakeTable) table;
    boolean mayBeFew = true;
    for (int attempt = 0;; attempt++) {
      Narrowed narrowed = new Narrowed(session, version.name());
      try {
        MergeParts parts = mayBeFew ? parts(plan, version) : null;
        FewRows few = parts == null ? null : new FewRows(version, parts, narrowed);
        mayBeFew = few != null && few.merge(attempt);
        if (mayBeFew ? few.isDone() : write(version, narrowed(narrowed, plan, rows), attempt)) {
          return;
        }
      } finally {
        narrowed.close();
      }
      LakeTable newest = version.newest();
      plan = (LogicalPlan) plan.transformDown(new Newer(version, newest));
      rows = Dataset$.MODULE$.ofRows(session, plan);
      version = newest;
    }
  }

  /** A merge that may be done without a join; null for what is none. */
  private MergeParts parts(LogicalPlan plan, LakeTable version) {
    boolean isStatement = statement != null && mode.equals("append");
    return isStatement ? MergeParts.of(plan, version, LakeRule.kind(statement)) : null;
  }

  private static Dataset narrowed(Narrowed narrowed, LogicalPlan plan, Dataset rows) {
    LogicalPlan less = narrowed.plan(plan);
    if (less == plan) {
      return rows;
    }
    less.setAnalyzed();
    return Dataset$.MODULE$.ofRows((SparkSession) rows.sparkSession(), less);
  }

  /** False when other writers were faster, and the rows have to be computed again. */
  private boolean write(LakeTable version, Dataset rows, int attempt) {
    Message message = new Message("write", lake).with("handle", version.handle).with("mode", mode);
    message.with("attempt", Integer.valueOf(attempt));
    String held = Questions.hold(rows);
    try {
      return !message.with("rows", held).with("statement", statement).ask().has("again");
    } finally {
      Questions.drop(held);
    }
  }

  /** One version of a table in the place of another. */
  private static class Newer extends Change {
    private final LakeTable before;
    private final LakeTable after;

    Newer(LakeTable before, LakeTable after) {
      this.before = before;
      this.after = after;
    }

    public Object change(Object node) {
      LakeTable table = node instanceof LogicalPlan ? LakeRule.table((LogicalPlan) node) : null;
      if (table == null || !table.name().equals(before.name()) || !table.isSameVersion(before)) {
        return null;
      }
      Object own = ((DataSourceV2Relation) node).table();
      boolean isTarget = own instanceof RowLevelOperationTable;
      Object other = isTarget ? new RowLevelOperationTable(after, ((RowLevelOperationTable) own).operation()) : after;
      return Copies.with((LogicalPlan) node, 0, other);
    }
  }
}
