package io.penstock;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * The answer of Python to one question: which files to read, by partition. It is Python that prunes; here, the partition
 * filters are applied to each partition's values once more, because Spark does not evaluate them again and a partition
 * too many would be wrong rows.
 */
public class PlannedFiles {
  private static final ObjectMapper JSON = new ObjectMapper();

  public final Seq directories;
  public final long bytes;
  public final String summary;
  public final HashSet withoutNan; // columns that hold no NaN in these files

  private PlannedFiles(Seq directories, long bytes, String summary, HashSet withoutNan) {
    this.directories = directories;
    this.bytes = bytes;
    this.summary = summary;
    this.withoutNan = withoutNan;
  }

  /** Ask Python and build what Spark wants. */
  public static PlannedFiles ask(String table, StructType partitions, Seq partitionFilters, Seq dataFilters) {
    try {
      String request = "{\"table\":" + JSON.writeValueAsString(table)
          + ",\"fieldIds\":" + SQLConf.get().parquetFieldIdReadEnabled()
          + ",\"partition\":" + Filters.toJson(partitionFilters)
          + ",\"data\":" + Filters.toJson(dataFilters) + "}";
      JsonNode answer = JSON.readTree(Questions.ask(request));
      if (answer.has("error")) {
        throw new IllegalArgumentException(at(answer, "error").asText());
      }
      return build(answer, partitions, partitionFilters);
    } catch (java.io.IOException error) {
      throw new IllegalStateException("Penstock's plan cannot be read", error);
    }
  }

  private static PlannedFiles build(JsonNode answer, StructType partitions, Seq filters) {
    BasePredicate predicate = bound(filters, partitions);
    StructField[] fields = partitions.fields();
    ArrayList directories = new ArrayList();
    long bytes = 0;
    JsonNode groups = at(answer, "partitions");
    for (int i = 0; i < groups.size(); i++) {
      JsonNode group = at(groups, i);
      Object[] values = new Object[fields.length];
      for (int k = 0; k < fields.length; k++) {
        values[k] = value(at(at(group, "values"), k), fields[k].dataType());
      }
      InternalRow row = new GenericInternalRow(values);
      if (predicate == null || predicate.eval(row)) {
        JsonNode files = at(group, "files");
        ArrayList statuses = new ArrayList();
        for (int k = 0; k < files.size(); k++) {
          statuses.add(status(at(files, k)));
          bytes += at(at(files, k), 1).asLong();
        }
        directories.add(new PartitionDirectory(row, seq(statuses)));
      }
    }
    return new PlannedFiles(seq(directories), bytes, at(answer, "summary").asText(), texts(at(answer, "withoutNan")));
  }

  private static HashSet texts(JsonNode list) {
    HashSet texts = new HashSet();
    for (int i = 0; i < list.size(); i++) {
      texts.add(at(list, i).asText());
    }
    return texts;
  }

  /* Janino sees only the inherited `get`, which returns a more general type. */
  private static JsonNode at(JsonNode node, String name) {
    return (JsonNode) node.get(name);
  }

  private static JsonNode at(JsonNode node, int i) {
    return (JsonNode) node.get(i);
  }

  private static FileStatusWithMetadata status(JsonNode file) {
    FileStatus status = new FileStatus(
        at(file, 1).asLong(), false, 1, 134217728L, at(file, 2).asLong(), new Path(at(file, 0).asText()));
    return new FileStatusWithMetadata(status, (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
  }

  /** A partition value in Catalyst's internal form. */
  public static Object value(JsonNode node, DataType type) {
    if (node.isNull()) {
      return null;
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(node.asText());
    }
    if (type instanceof BooleanType) {
      return Boolean.valueOf(node.asBoolean());
    }
    if (type instanceof ByteType) {
      return Byte.valueOf((byte) node.asInt());
    }
    if (type instanceof ShortType) {
      return Short.valueOf((short) node.asInt());
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf(node.asInt());
    }
    if (type instanceof FloatType) {
      return Float.valueOf(node.asText());
    }
    if (type instanceof DoubleType) {
      return Double.valueOf(node.asText());
    }
    if (type instanceof BinaryType) {
      return Base64.getDecoder().decode(node.asText());
    }
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.apply(new java.math.BigDecimal(node.asText()), decimal.precision(), decimal.scale());
    }
    return Long.valueOf(node.asLong()); // bigint and both timestamps
  }

  /** Whether an expression has no value before the query runs: it holds a subquery or a Python function. */
  public static boolean waits(Expression expression) {
    if (expression instanceof PlanExpression || expression instanceof Unevaluable && !(expression instanceof Attribute)) {
      return true;
    }
    scala.collection.Seq children = expression.children();
    for (int i = 0; i < children.size(); i++) {
      if (waits((Expression) children.apply(i))) {
        return true;
      }
    }
    return false;
  }

  private static BasePredicate bound(Seq filters, StructType partitions) {
    Expression all = null;
    for (int i = 0; i < filters.size(); i++) {
      Expression filter = (Expression) ((Expression) filters.apply(i)).transform(new Bind(partitions));
      all = all == null ? filter : new And(all, filter);
    }
    return all == null ? null : Predicate$.MODULE$.createInterpreted(all);
  }

  public static Seq seq(Object[] elements) {
    return seq(new ArrayList(Arrays.asList(elements)));
  }

  public static Seq seq(ArrayList list) {
    return ((scala.collection.Iterable) scala.jdk.javaapi.CollectionConverters.asScala((java.util.List) list)).toSeq();
  }

  /** Columns to positions in the partition's row. */
  public static class Bind extends scala.runtime.AbstractPartialFunction {
    private final StructType partitions;

    public Bind(StructType partitions) {
      this.partitions = partitions;
    }

    public boolean isDefinedAt(Object node) {
      return node instanceof AttributeReference;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!(node instanceof AttributeReference)) {
        return otherwise.apply(node);
      }
      AttributeReference column = (AttributeReference) node;
      String[] names = partitions.fieldNames();
      for (int i = 0; i < names.length; i++) {
        if (names[i].equalsIgnoreCase(column.name())) {
          return new BoundReference(i, column.dataType(), true);
        }
      }
      throw new IllegalArgumentException("no partition column " + column.name());
    }
  }
}
