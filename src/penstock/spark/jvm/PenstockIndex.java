package io.penstock;

import java.util.HashSet;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** The files of a Penstock table, found anew for each question. Two indexes of one version of one table are equal. */
public class PenstockIndex implements FileIndex {
  final String table;
  final StructType partitions;
  final Object user; // when it is garbage, no plan needs the source in Python any more
  final PlannedFiles planned;
  final String filterKey;

  public PenstockIndex(String table, StructType partitions) {
    this(table, partitions, new Object(), null, "");
    Questions.releaseWith(user, table);
  }

  private PenstockIndex(String table, StructType partitions, Object user, PlannedFiles planned, String filterKey) {
    this.table = table;
    this.partitions = partitions;
    this.user = user;
    this.planned = planned;
    this.filterKey = filterKey;
  }

  /** The same table with a plan already made for some filters, so that Spark sees the size of what is left. */
  public PenstockIndex planned(Seq partitionFilters, Seq dataFilters) {
    PlannedFiles files = PlannedFiles.ask(table, partitions, partitionFilters, dataFilters);
    return new PenstockIndex(table, partitions, user, files, key(partitionFilters, dataFilters));
  }

  /** Spark's own Parquet scan over this index; `storage` is added to the Hadoop configuration of its readers. */
  public Object dataFrame(SparkSession session, StructType data, java.util.Map storage) {
    scala.collection.immutable.Map options = (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
    Object[] names = storage.keySet().toArray();
    for (int i = 0; i < names.length; i++) {
      options = (scala.collection.immutable.Map) options.updated(names[i], storage.get(names[i]));
    }
    return session.baseRelationToDataFrame(
        new HadoopFsRelation(this, partitions, data, scala.Option.empty(), reader(data), options, session));
  }

  /** Spark's Parquet reader for these files; before planning, any of them may hold NaN. */
  public ParquetFileFormat reader(StructType data) {
    return NanSafeParquet.of(data, planned == null ? new HashSet() : planned.withoutNan);
  }

  public boolean isPlanned() {
    return planned != null;
  }

  /**
   * The filters by what they say, with columns by name: two scans of one table with the same filters are equal, which
   * lets Spark reuse one's exchange for the other. The order of filters does not matter, nor which of the two lists one
   * is in. A data filter with a subquery is left out: it prunes nothing, and Spark evaluates it on the rows.
   */
  private static String key(Seq partitionFilters, Seq dataFilters) {
    java.util.TreeSet filters = new java.util.TreeSet();
    for (int i = 0; i < partitionFilters.size(); i++) {
      filters.add(Filters.toJson((Expression) partitionFilters.apply(i)));
    }
    for (int i = 0; i < dataFilters.size(); i++) {
      Expression filter = (Expression) dataFilters.apply(i);
      if (!PlannedFiles.waits(filter)) {
        filters.add(Filters.toJson(filter));
      }
    }
    return filters.toString();
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    if (planned != null && filterKey.equals(key(partitionFilters, dataFilters))) {
      return planned.directories;
    }
    return PlannedFiles.ask(table, partitions, partitionFilters, dataFilters).directories;
  }

  /** Empty before planning, so that nobody writes into the table by accident; then a line for `explain`. */
  public Seq rootPaths() {
    return PlannedFiles.seq(
        planned == null ? new Object[0] : new Object[] {new Path("penstock", null, "/" + planned.summary)});
  }

  public String[] inputFiles() {
    Seq nothing = PlannedFiles.seq(new Object[0]);
    Seq directories = planned != null ? planned.directories : listFiles(nothing, nothing);
    java.util.ArrayList paths = new java.util.ArrayList();
    for (int i = 0; i < directories.size(); i++) {
      Seq files = ((org.apache.spark.sql.execution.datasources.PartitionDirectory) directories.apply(i)).files();
      for (int k = 0; k < files.size(); k++) {
        paths.add(((org.apache.spark.sql.execution.datasources.FileStatusWithMetadata) files.apply(k)).getPath().toString());
      }
    }
    return (String[]) paths.toArray(new String[0]);
  }

  public void refresh() {
  }

  public long sizeInBytes() {
    return planned == null ? Long.MAX_VALUE : planned.bytes;
  }

  public StructType partitionSchema() {
    return partitions;
  }

  public scala.Option metadataOpsTimeNs() {
    return scala.Option.empty();
  }

  public String toString() {
    return "Penstock(" + table + (planned == null ? "" : ", " + planned.summary) + ")";
  }

  public boolean equals(Object other) {
    return other instanceof PenstockIndex && ((PenstockIndex) other).table.equals(table)
        && ((PenstockIndex) other).filterKey.equals(filterKey);
  }

  public int hashCode() {
    return table.hashCode() * 31 + filterKey.hashCode();
  }
}
