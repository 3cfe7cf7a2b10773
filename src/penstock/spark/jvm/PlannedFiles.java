package io.penstock;

import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.LinkedHashMap;

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

  public final Seq directories; // of PartitionDirectory
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
  public static PlannedFiles ask(PenstockIndex index, Seq partitionFilters, Seq dataFilters) {
    LinkedHashMap request = new LinkedHashMap();
    request.put("table", index.table);
    request.put("fieldIds", Boolean.valueOf(index.reader.findsFieldIds()));
    request.put("partition", Filters.plain(partitionFilters));
    request.put("data", Filters.plain(dataFilters));
    try {
      JsonNode answer = JSON.readTree(Questions.ask(Filters.text(request)));
      if (answer.has("error")) {
        throw new IllegalArgumentException(Message.at(answer, "error").asText());
      }
      return build(answer, index.partitions, partitionFilters);
    } catch (java.io.IOException error) {
      throw new IllegalStateException("Penstock's plan cannot be read", error);
    }
  }

  private static PlannedFiles build(JsonNode answer, StructType partitions, Seq filters) {
    BasePredicate predicate = bound(filters, partitions);
    StructField[] fields = partitions.fields();
    ArrayList directories = new ArrayList();
    long bytes = 0;
    int dropped = 0;
    for (JsonNode group : Message.at(answer, "partitions")) {
      Object[] values = new Object[fields.length];
      for (int k = 0; k < fields.length; k++) {
        values[k] = value(Message.at(Message.at(group, "values"), k), fields[k].dataType());
      }
      InternalRow row = new GenericInternalRow(values);
      if (predicate == null || predicate.eval(row)) {
        ArrayList statuses = new ArrayList();
        for (JsonNode file : Message.at(group, "files")) {
          statuses.add(status(file));
          bytes += Message.at(file, 1).asLong();
        }
        directories.add(new PartitionDirectory(row, Seqs.seqOf(statuses)));
      } else {
        dropped += Message.at(group, "files").size();
      }
    }
    HashSet withoutNan = new HashSet();
    for (JsonNode column : Message.at(answer, "withoutNan")) {
      withoutNan.add(column.asText());
    }
    String summary = less(Message.at(answer, "summary").asText(), dropped);
    return new PlannedFiles(Seqs.seqOf(directories), bytes, summary, withoutNan);
  }

  /** The line for people, where files were left out here: by columns that only the scan has, such as `_spec_id`. */
  private static String less(String summary, int dropped) {
    int end = summary.indexOf(' ');
    if (dropped == 0 || end <= 0) {
      return summary;
    }
    return Integer.parseInt(summary.substring(0, end)) - dropped + summary.substring(end) + ", " + dropped + " by _partition";
  }

  private static FileStatusWithMetadata status(JsonNode file) {
    Path path = new Path(Message.at(file, 0).asText());
    FileStatus status = new FileStatus(
        Message.at(file, 1).asLong(), false, 1, 134217728L, Message.at(file, 2).asLong(), path);
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
    for (Expression child : Seqs.list(expression.children())) {
      if (waits(child)) {
        return true;
      }
    }
    return false;
  }

  private static BasePredicate bound(Seq filters, StructType partitions) {
    Expression all = null;
    for (Expression filter : Seqs.list(filters)) {
      Expression bound = (Expression) filter.transform(new Bind(partitions));
      all = all == null ? bound : new And(all, bound);
    }
    return all == null ? null : Predicate$.MODULE$.createInterpreted(all);
  }

  public static Seq seq(ArrayList list) {
    return Seqs.seqOf(list);
  }

  /** Columns to positions in the partition's row. */
  public static class Bind extends Change {
    private final StructType partitions;

    public Bind(StructType partitions) {
      this.partitions = partitions;
    }

    public Object change(Object node) {
      if (!(node instanceof AttributeReference)) {
        return null;
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
