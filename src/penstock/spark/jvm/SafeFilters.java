package io.penstock;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

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
import scala.Product;
import scala.collection.immutable.Seq;

/**
 * The filters that a reader of files with statistics may be given, without those that would lose rows of float columns.
 * Spark evaluates all filters again on the rows, so a filter that is not pushed costs time only.
 *
 * <p>NaN: the minimum and maximum in Parquet and ORC leave it out, and to Spark it is larger than every number. `d > 1e9`
 * skips a row group of [1.0, NaN] by its maximum of 1.0. Filters that are true for NaN are pushed only on columns that
 * have none.
 *
 * <p>Zero: -0.0 = 0.0 in Spark, but Parquet's dictionaries and ORC's bounds tell the two apart. `d = 0.0` skips a row group
 * of [-0.0]. Such a filter is pushed as a range of both zeros.
 */
public class SafeFilters {
  private static final Double NAN = Double.valueOf(Double.NaN);
  private final Set withoutNan; // columns as filters name them

  public SafeFilters(Set withoutNan) {
    this.withoutNan = withoutNan;
  }

  /** Those of some filters, or of their parts, that may be pushed. */
  public Seq of(Seq filters) {
    ArrayList pushed = new ArrayList();
    for (Filter filter : Seqs.list(filters)) {
      Filter safe = safe(filter);
      if (safe != null) {
        pushed.add(safe);
      }
    }
    return Seqs.seqOf(pushed);
  }

  /** Whether filters can reach a float; they never reach what is inside lists and maps. */
  public static boolean areNeeded(StructType struct) {
    for (StructField field : struct.fields()) {
      DataType type = field.dataType();
      if (type instanceof FloatType || type instanceof DoubleType
          || type instanceof StructType && areNeeded((StructType) type)) {
        return true;
      }
    }
    return false;
  }

  /** A filter that is true at least where this one is, also to the reader; null for none. */
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
    List floats = floats(filter);
    if (floats.isEmpty()) {
      return filter;
    }
    return floats.contains(NAN) ? null : comparison(filter, hasZero(floats));
  }

  private Filter comparison(Filter filter, boolean zero) {
    String column = filter.references()[0];
    if (filter instanceof GreaterThan) {
      return isWithoutNan(filter) ? filter : null;
    }
    if (filter instanceof GreaterThanOrEqual) {
      return !isWithoutNan(filter) ? null : zero ? new GreaterThanOrEqual(column, zero(filter, -0.0d)) : filter;
    }
    if (filter instanceof LessThan) {
      return filter;
    }
    if (filter instanceof LessThanOrEqual) {
      return zero ? new LessThanOrEqual(column, zero(filter, 0.0d)) : filter;
    }
    if (filter instanceof EqualTo || filter instanceof EqualNullSafe) {
      return !zero ? filter : new And(
          new GreaterThanOrEqual(column, zero(filter, -0.0d)), new LessThanOrEqual(column, zero(filter, 0.0d)));
    }
    return filter instanceof In && !zero ? filter : null; // a list with both zeros keeps one of them
  }

  /** Whether readers understand a filter exactly as Spark does, so that its negation is safe too. */
  private boolean meansTheSame(Filter filter) {
    if (filter instanceof Not) {
      return meansTheSame(((Not) filter).child());
    }
    if (filter instanceof And || filter instanceof Or) {
      return meansTheSame((Filter) part(filter, 0)) && meansTheSame((Filter) part(filter, 1));
    }
    List floats = floats(filter);
    return floats.isEmpty() || isWithoutNan(filter) && !floats.contains(NAN) && !hasZero(floats);
  }

  private boolean isWithoutNan(Filter filter) {
    return withoutNan.contains(filter.references()[0]);
  }

  /** What a filter is made of, in a comparison a column and its value. */
  private static Object part(Filter filter, int place) {
    return ((Product) filter).productElement(place);
  }

  /** The numbers that a float column is compared with; none for filters of other kinds, or on other columns. */
  private static List floats(Filter filter) {
    Object compared = ((Product) filter).productArity() == 2 ? part(filter, 1) : null;
    ArrayList floats = new ArrayList();
    for (Object value : compared instanceof Object[] ? (Object[]) compared : new Object[] {compared}) {
      if (value instanceof Float || value instanceof Double) {
        floats.add(Double.valueOf(((Number) value).doubleValue()));
      }
    }
    return floats;
  }

  private static boolean hasZero(List floats) {
    return floats.contains(Double.valueOf(0.0d)) || floats.contains(Double.valueOf(-0.0d));
  }

  /** A zero in the type of the filter's value. */
  private static Object zero(Filter filter, double zero) {
    return part(filter, 1) instanceof Float ? (Object) Float.valueOf((float) zero) : (Object) Double.valueOf(zero);
  }
}
