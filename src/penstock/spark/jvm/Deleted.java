package io.penstock;

import java.lang.reflect.Constructor;
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

/**
 * Whether a number is in a set that came with a file. A set is a Roaring bitmap in its portable form, of 32 bits; the
 * classes that look into it are Spark's own, so executors need nothing of ours.
 */
public class Deleted {
  /** True or false; null where there is no set. */
  public static Column contains(Column set, Column number) {
    Expression serialized = (Expression) make(StaticInvoke.class, new Object[] {
        ByteBuffer.class, new ObjectType(ByteBuffer.class), "wrap",
        PlannedFiles.seq(new Object[] {ExpressionUtils.expression(set)})});
    Expression bitmap = (Expression) make(NewInstance.class, new Object[] {
        ImmutableRoaringBitmap.class, PlannedFiles.seq(new Object[] {serialized}), PlannedFiles.seq(new Object[0]),
        Boolean.TRUE, new ObjectType(ImmutableRoaringBitmap.class)});
    Object legacy = EvalMode$.MODULE$.LEGACY(); // numbers above 2^31 are negative ints to Roaring
    Expression place = (Expression) make(Cast.class, new Object[] {
        ExpressionUtils.expression(number), DataTypes.IntegerType, scala.Option.empty(), legacy});
    return ExpressionUtils.column((Expression) make(Invoke.class, new Object[] {
        bitmap, "contains", DataTypes.BooleanType, PlannedFiles.seq(new Object[] {place})}));
  }

  /** `new type(first …)` with the defaults for the other arguments, of which later versions of Spark have more. */
  private static Object make(Class type, Object[] first) {
    try {
      Constructor[] all = type.getConstructors();
      Constructor longest = all[0];
      for (int i = 1; i < all.length; i++) {
        longest = all[i].getParameterTypes().length > longest.getParameterTypes().length ? all[i] : longest;
      }
      Object[] arguments = new Object[longest.getParameterTypes().length];
      for (int i = 0; i < arguments.length; i++) {
        arguments[i] = i < first.length ? first[i] : defaultOf(type, i + 1);
      }
      return longest.newInstance(arguments);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("this version of Spark is not supported", error);
    }
  }

  private static Object defaultOf(Class type, int place) throws ReflectiveOperationException {
    if (type == NewInstance.class) {
      return scala.Option.empty(); // the outer pointer, which has no default
    }
    return type.getMethod("$lessinit$greater$default$" + place, new Class[0]).invoke(null, new Object[0]);
  }
}
