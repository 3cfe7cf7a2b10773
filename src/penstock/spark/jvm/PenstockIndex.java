package io.penstock;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.TreeSet;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The files of a Penstock table, found anew for each question. Two indexes of one version of one table are equal. */
public class PenstockIndex implements FileIndex {
  final String table;
  final StructType partitions;
  final FileReader reader;
  final Object user; // when it is garbage, no plan needs the source in Python any more
  final PlannedFiles planned;
  final String filterKey;

  public PenstockIndex(String table, StructType partitions, FileReader reader) {
    this(table, partitions, reader, new Object(), null, "");
    Questions.releaseWith(user, table);
  }

  private PenstockIndex(
      String table, StructType partitions, FileReader reader, Object user, PlannedFiles planned, String filterKey) {
    this.table = table;
    this.partitions = partitions;
    this.reader = reader;
    this.user = user;
    this.planned = planned;
    this.filterKey = filterKey;
  }

  /** The same table with a plan already made for some filters, so that Spark sees the size of what is left. */
  public PenstockIndex planned(Seq partitionFilters, Seq dataFilters) {
    PlannedFiles files = PlannedFiles.ask(this, partitionFilters, dataFilters);
    return new PenstockIndex(table, partitions, reader, user, files, key(partitionFilters, dataFilters));
  }

  /** Spark's own scan over this index; `storage` is added to the Hadoop configuration of its readers. */
  public Object dataFrame(SparkSession session, StructType data, java.util.Map storage) {
    Map options = (Map) Map$.MODULE$.from(CollectionConverters.asScala(storage));
    return session.baseRelationToDataFrame(
        new HadoopFsRelation(this, partitions, data, scala.Option.empty(), format(data), options, session));
  }

  /** Spark's reader for these files; before planning, any of them may hold NaN. */
  public FileFormat format(StructType data) {
    return reader.of(data, planned == null ? new HashSet() : planned.withoutNan);
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
    TreeSet filters = new TreeSet();
    for (Expression filter : Seqs.list(partitionFilters)) {
      filters.add(Filters.toJson(filter));
    }
    for (Expression filter : Seqs.list(dataFilters)) {
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
    return PlannedFiles.ask(this, partitionFilters, dataFilters).directories;
  }

  /** Empty before planning, so that nobody writes into the table by accident; then a line for `explain`. */
  public Seq rootPaths() {
    return planned == null ? Seqs.seq() : Seqs.seq(new Path("penstock", null, "/" + planned.summary));
  }

  public String[] inputFiles() {
    Seq directories = planned != null ? planned.directories : listFiles(Seqs.seq(), Seqs.seq());
    ArrayList paths = new ArrayList();
    for (PartitionDirectory directory : Seqs.list(directories)) {
      for (FileStatusWithMetadata file : Seqs.list(directory.files())) {
        paths.add(file.getPath().toString());
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
