package io.penstock;

import java.util.HashSet;
import java.util.Set;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** Spark's own ORC reader, given `SafeFilters`. Only the driver knows this class: the reader that tasks get is Spark's. */
public class NanSafeOrc extends OrcFileFormat implements FileReader {
  private final SafeFilters filters;

  public NanSafeOrc() {
    this(new HashSet());
  }

  private NanSafeOrc(Set withoutNan) {
    this.filters = new SafeFilters(withoutNan);
  }

  public FileFormat of(StructType data, Set withoutNan) {
    return SafeFilters.areNeeded(data) ? new NanSafeOrc(withoutNan) : new OrcFileFormat();
  }

  public boolean findsFieldIds() {
    return false;
  }

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType partitions, StructType required, Seq pushed, Map options,
      Configuration hadoop) {
    return new OrcFileFormat().buildReaderWithPartitionValues(
        session, data, partitions, required, filters.of(pushed), options, hadoop);
  }
}
