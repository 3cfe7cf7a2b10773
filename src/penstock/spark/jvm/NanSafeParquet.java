package io.penstock;

import java.util.ArrayList;
import java.util.Set;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's own Parquet reader, without the pushed filters that would lose rows of float columns. Spark evaluates all
 * filters again on the rows, so a filter that is not pushed costs time only.
 *
 * <p>NaN: Parquet's minimum and maximum leave it out, and to Spark it is larger than every number. `d > 1e9` skips a row
 * group of [1.0, NaN] by its maximum of 1.0. Filters that are true for NaN are pushed only on columns that have none.
 *
 * <p>Zero: -0.0 = 0.0 in Spark, but Parquet's dictionaries tell the two apart. `d = 0.0` skips a row group of [-0.0]. Such
 * a filter is pushed as a range of both zeros.
 *
 * <p>Only the driver knows this class: the reader that tasks get is Spark's.
 */
public class NanSafeParquet extends ParquetFileFormat {
  private final Set withoutNan; // columns as filters name them

  private NanSafeParquet(Set withoutNan) {
    this.withoutNan = withoutNan;
  }

  /** The reader for some columns, of which those in `withoutNan` are known to hold no NaN. */
  public static ParquetFileFormat of(StructType data, Set withoutNan) {
    return hasFloat(data) ? new NanSafeParquet(withoutNan) : new ParquetFileFormat();
  }

  /** Whether filters can reach a float; they never reach what is inside lists and maps. */
  private static boolean hasFloat(StructType struct) {
    StructField[] fields = struct.fields();
    for (int i = 0; i < fields.length; i++) {
      DataType type = fields[i].dataType();
      if (type instanceof FloatType || type instanceof DoubleType
          || type instanceof StructType && hasFloat((StructType) type)) {
        return true;
      }
    }
    return false;
  }

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType partitions, StructType required, Seq filters, Map options,
      Configuration hadoop) {
    ArrayList pushed = new ArrayList();
    for (int i = 0; i < filters.size(); i++) {
      Filter filter = safe((Filter) filters.apply(i));
      if (filter != null) {
        pushed.add(filter);
      }
    }
    return new ParquetFileFormat().buildReaderWithPartitionValues(
        session, data, partitions, required, PlannedFiles.seq(pushed), options, hadoop);
  }

  /** A filter that is true at least where this one is, also to Parquet; null for none. */
  private Filter safe(Filter filter) {
    if (filter instanceof And) {
      Filter left = safe(((And) filter).left());
      Filter right = safe(((And) filter).right());
      return left == null ? right : right == null ? left : new And(left, right);
    }
    if (filter instanceof Or) {
      Filter left = safe(((Or) filter).left());
      Filter right = safe(((Or) filter).right());
      return left == null || right == null ? null : new Or(left, right);
    }
    if (filter instanceof Not) {
      return meansTheSame(((Not) filter).child()) ? filter : null;
    }
    Object[] values = values(filter);
    if (!hasFloat(values)) {
      return filter;
    }
    return hasNan(values) ? null : comparison(filter, values);
  }

  private Filter comparison(Filter filter, Object[] values) {
    boolean zero = hasZero(values);
    String column = filter.references()[0];
    if (filter instanceof GreaterThan) {
      return isWithoutNan(filter) ? filter : null;
    }
    if (filter instanceof GreaterThanOrEqual) {
      return !isWithoutNan(filter) ? null : zero ? new GreaterThanOrEqual(column, zero(values[0], true)) : filter;
    }
    if (filter instanceof LessThan) {
      return filter;
    }
    if (filter instanceof LessThanOrEqual) {
      return zero ? new LessThanOrEqual(column, zero(values[0], false)) : filter;
    }
    if (filter instanceof EqualTo || filter instanceof EqualNullSafe) {
      return !zero ? filter : new And(
          new GreaterThanOrEqual(column, zero(values[0], true)), new LessThanOrEqual(column, zero(values[0], false)));
    }
    return filter instanceof In && !zero ? filter : null; // a list with both zeros keeps one of them
  }

  /** Whether Parquet understands a filter exactly as Spark does, so that its negation is safe too. */
  private boolean meansTheSame(Filter filter) {
    if (filter instanceof And) {
      return meansTheSame(((And) filter).left()) && meansTheSame(((And) filter).right());
    }
    if (filter instanceof Or) {
      return meansTheSame(((Or) filter).left()) && meansTheSame(((Or) filter).right());
    }
    if (filter instanceof Not) {
      return meansTheSame(((Not) filter).child());
    }
    Object[] values = values(filter);
    return !hasFloat(values) || isWithoutNan(filter) && !hasNan(values) && !hasZero(values);
  }

  private boolean isWithoutNan(Filter filter) {
    return withoutNan.contains(filter.references()[0]);
  }

  /** The values that a column is compared with; none for filters of other kinds. */
  private static Object[] values(Filter filter) {
    if (filter instanceof In) {
      return ((In) filter).values();
    }
    Object value = filter instanceof EqualTo ? ((EqualTo) filter).value()
        : filter instanceof EqualNullSafe ? ((EqualNullSafe) filter).value()
        : filter instanceof GreaterThan ? ((GreaterThan) filter).value()
        : filter instanceof GreaterThanOrEqual ? ((GreaterThanOrEqual) filter).value()
        : filter instanceof LessThan ? ((LessThan) filter).value()
        : filter instanceof LessThanOrEqual ? ((LessThanOrEqual) filter).value()
        : null;
    return new Object[] {value};
  }

  /** Filters on float columns have float values, and no others do. */
  private static boolean hasFloat(Object[] values) {
    for (int i = 0; i < values.length; i++) {
      if (values[i] instanceof Float || values[i] instanceof Double) {
        return true;
      }
    }
    return false;
  }

  private static boolean hasNan(Object[] values) {
    for (int i = 0; i < values.length; i++) {
      if (values[i] instanceof Number && Double.isNaN(((Number) values[i]).doubleValue())) {
        return true;
      }
    }
    return false;
  }

  private static boolean hasZero(Object[] values) {
    for (int i = 0; i < values.length; i++) {
      if (values[i] instanceof Number && ((Number) values[i]).doubleValue() == 0) {
        return true;
      }
    }
    return false;
  }

  private static Object zero(Object like, boolean negative) {
    double value = negative ? -0.0d : 0.0d;
    return like instanceof Float ? (Object) Float.valueOf((float) value) : (Object) Double.valueOf(value);
  }
}
