package io.penstock;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsPartitionManagement;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.StructType$;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * One version of a table of a lake. `LakeRule` puts the native scan in its place; what is written goes to Python.
 * Two of one version are equal, so that Spark finds what it has cached and reuses exchanges.
 */
public class LakeTable
    implements SupportsRead, SupportsWrite, TruncatableTable, SupportsMetadataColumns, SupportsPartitionManagement,
    SupportsRowLevelOperations {
  public final String lake;
  public final JsonNode facts;
  public final String handle; // by which Python knows this version
  public final StructType schema;
  private final Object user = new Object(); // when it is garbage, Python may forget the version
  private final String statement; // of a table that only carries a DELETE, UPDATE or MERGE to Python

  public LakeTable(String lake, JsonNode facts) {
    this(lake, facts, null);
    Questions.releaseWith(user, "table " + handle);
  }

  protected LakeTable(String lake, JsonNode facts, String statement) {
    this.lake = lake;
    this.facts = facts;
    this.handle = Message.text(facts, "handle");
    this.schema = (StructType) DataType.fromJson(Message.text(facts, "schema"));
    this.statement = statement;
  }

  /** The table as the target of a statement that Python executes. */
  public LakeTable carrying(String statement) {
    return new Carrier(this, statement);
  }

  public String name() {
    return lake + "." + Message.text(facts, "name");
  }

  /** The table as it is now. */
  public LakeTable newest() {
    String[] parts = Message.text(facts, "name").split("\\.");
    return new LakeTable(lake, new Message("load", lake).with("table", parts).ask());
  }

  /** Whether another object stands for the same version. */
  public boolean isSameVersion(LakeTable other) {
    return Message.text(facts, "key").equals(Message.text(other.facts, "key"));
  }

  public StructType schema() {
    return schema;
  }

  public Transform[] partitioning() {
    JsonNode fields = Message.at(facts, "partitioning");
    Transform[] transforms = new Transform[fields.size()];
    for (int i = 0; i < transforms.length; i++) {
      transforms[i] = transform(Message.at(fields, i));
    }
    return transforms;
  }

  private static Transform transform(JsonNode field) {
    String column = Message.text(field, "column");
    String name = Message.text(field, "transform");
    if (name.equals("identity")) {
      return Expressions.identity(column);
    }
    if (name.equals("bucket")) {
      return Expressions.bucket(Message.at(field, "width").asInt(), new String[] {column});
    }
    Expression source = (Expression) Expressions.column(column);
    Expression[] arguments = field.has("width")
        ? new Expression[] {(Expression) Expressions.literal(Integer.valueOf(Message.at(field, "width").asInt())), source}
        : new Expression[] {source};
    return Expressions.apply(name, arguments);
  }

  public Map properties() {
    return Message.map(Message.at(facts, "properties"));
  }

  public Set capabilities() {
    EnumSet all = EnumSet.of(TableCapability.BATCH_READ, TableCapability.V1_BATCH_WRITE, TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER);
    all.add(TableCapability.MICRO_BATCH_READ);
    all.add(TableCapability.STREAMING_WRITE);
    all.add(TableCapability.OVERWRITE_DYNAMIC); // `LakeRule` sends it to Python, though Spark wants to see the next one
    all.add(TableCapability.BATCH_WRITE);
    for (int i = 0; i < TableCapability.values().length; i++) {
      if (TableCapability.values()[i].name().equals("AUTOMATIC_SCHEMA_EVOLUTION")) { // not in every Spark
        all.add(TableCapability.values()[i]); // MERGE WITH SCHEMA EVOLUTION: Spark asks for columns before it writes
      }
    }
    if (statement != null) {
      all.add(TableCapability.ACCEPT_ANY_SCHEMA);
    }
    return all;
  }

  /** Streams come here, and Spark's estimates: a query's scan has been put in this table's place before. */
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new LakeStream(lake, handle, this, schema, options);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new LakeWrite(lake, handle, this, statement, info);
  }

  /** An error where the table cannot be written. */
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    new Message("for-writing", lake).with("handle", handle).ask();
    return new LakeOperation(this, info.command());
  }

  public MetadataColumn[] metadataColumns() {
    ArrayList columns = new ArrayList();
    columns.add(new Hidden(LakeOperation.FILE, DataTypes.StringType, false, "the file of the row"));
    columns.add(new Hidden(LakeOperation.PLACE, DataTypes.LongType, false, "the place of the row in its file"));
    StructType ofSpark = StructType$.MODULE$.apply(new ParquetFileFormat().metadataSchemaFields());
    columns.add(new Hidden("_metadata", ofSpark, true, "of Spark's reader"));
    if (facts.has("partition")) {
      StructType partition = (StructType) DataType.fromJson(Message.text(facts, "partition"));
      columns.add(new Hidden("_spec_id", DataTypes.IntegerType, true, "by which spec the file is partitioned"));
      if (partition.size() > 0) {
        columns.add(new Hidden("_partition", partition, true, "the partition of the file"));
      }
    }
    return (MetadataColumn[]) columns.toArray(new MetadataColumn[0]);
  }

  // Partitions: shown, and changed by the rows only

  public StructType partitionSchema() {
    return (StructType) DataType.fromJson(Message.text(facts, "partitions"));
  }

  public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
    return (InternalRow[]) partitions(names, values).keySet().toArray(new InternalRow[0]);
  }

  /** What is known of partitions, by their values. */
  private Map partitions(String[] names, InternalRow values) {
    StructType partitions = partitionSchema();
    JsonNode answer = new Message("partitions", lake).with("handle", handle).ask();
    JsonNode rows = Message.at(answer, "rows");
    LinkedHashMap matching = new LinkedHashMap();
    for (int i = 0; i < rows.size(); i++) {
      Object[] row = new Object[partitions.size()];
      for (int k = 0; k < row.length; k++) {
        row[k] = PlannedFiles.value(Message.at(Message.at(rows, i), k), partitions.fields()[k].dataType());
      }
      boolean matches = true;
      for (int k = 0; k < names.length; k++) {
        int place = partitions.fieldIndex(names[k]);
        matches &= java.util.Objects.equals(row[place], values.get(k, partitions.fields()[place].dataType()));
      }
      if (matches) {
        matching.put(new GenericInternalRow(row), Message.at(Message.at(answer, "counts"), i));
      }
    }
    return matching;
  }

  /** The counts of a partition, under the names that they have in Hive. */
  public Map loadPartitionMetadata(InternalRow partition) {
    Iterator counts = partitions(partitionSchema().fieldNames(), partition).values().iterator();
    return counts.hasNext() ? Message.map((JsonNode) counts.next()) : new HashMap();
  }

  public void createPartition(InternalRow partition, Map properties) {
    refuse("ALTER TABLE … ADD PARTITION");
  }

  public boolean dropPartition(InternalRow partition) {
    refuse("ALTER TABLE … DROP PARTITION");
    return false;
  }

  public void replacePartitionMetadata(InternalRow partition, Map properties) {
    refuse("ALTER TABLE … PARTITION");
  }

  /** An error that says that there is no such statement for this table. */
  public void refuse(String statement) {
    new Message("unsupported", lake).with("statement", statement).with("handle", handle).ask();
  }

  public boolean truncateTable() {
    new Message("truncate", lake).with("handle", handle).ask();
    return true;
  }

  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass() && ((LakeTable) other).key().equals(key());
  }

  public int hashCode() {
    return key().hashCode();
  }

  private String key() {
    return lake + " " + Message.text(facts, "key") + (statement == null ? "" : " " + statement);
  }

  public String toString() {
    return name();
  }

  /** A table that only carries a statement; it keeps the version alive that it was made from. */
  public static class Carrier extends LakeTable {
    final LakeTable target;

    Carrier(LakeTable target, String statement) {
      super(target.lake, target.facts, statement);
      this.target = target;
    }
  }

  /** A table that is published together with its rows. */
  public static class Staged extends LakeTable implements StagedTable {
    public Staged(String lake, JsonNode facts) {
      super(lake, facts);
    }

    public void commitStagedChanges() {
      new Message("commit-staged", lake).with("handle", handle).ask();
    }

    public void abortStagedChanges() {
      new Message("abort-staged", lake).with("handle", handle).ask();
    }
  }

  private static class Hidden implements MetadataColumn {
    private final String name;
    private final DataType type;
    private final boolean isNullable;
    private final String comment;

    Hidden(String name, DataType type, boolean isNullable, String comment) {
      this.name = name;
      this.type = type;
      this.isNullable = isNullable;
      this.comment = comment;
    }

    public String name() {
      return name;
    }

    public DataType dataType() {
      return type;
    }

    public boolean isNullable() {
      return isNullable;
    }

    public String comment() {
      return comment;
    }
  }
}
