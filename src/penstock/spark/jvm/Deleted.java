package io.penstock;

import java.nio.ByteBuffer;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.NewInstance;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.roaringbitmap.buffer.ImmutableRoaringBitmap;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Whether a number is in a set that came with a file. A set is a Roaring bitmap in its portable form, of 32 bits; the
 * classes that look into it are Spark's own, so executors need nothing of ours.
 */
public class Deleted {
  /** True or false; null where there is no set. */
  public static Column contains(Column set, Column number) {
    Seq none = Seqs.seq();
    Expression serialized = new StaticInvoke(
        ByteBuffer.class, new ObjectType(ByteBuffer.class), "wrap", Seqs.seq(ExpressionUtils.expression(set)), none,
        true, true, true, Option.empty());
    Expression bitmap = new NewInstance(
        ImmutableRoaringBitmap.class, Seqs.seq(serialized), none, true, new ObjectType(ImmutableRoaringBitmap.class),
        Option.empty());
    Expression place = new Cast( // numbers above 2^31 are negative ints to Roaring
        ExpressionUtils.expression(number), DataTypes.IntegerType, Option.empty(), EvalMode$.MODULE$.LEGACY());
    return ExpressionUtils.column(new Invoke(
        bitmap, "contains", DataTypes.BooleanType, Seqs.seq(place), none, true, true, true));
  }
}
