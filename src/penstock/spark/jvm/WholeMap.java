package io.penstock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ArrayFilter;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Concat;
import org.apache.spark.sql.catalyst.expressions.CreateArray;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MapFilter;
import org.apache.spark.sql.catalyst.expressions.MapKeys;
import org.apache.spark.sql.catalyst.expressions.MapValues;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.Size;
import org.apache.spark.sql.catalyst.expressions.objects.NewInstance;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * A residual map and the values of some keys, put together by Spark's own classes: the keys one array after the other,
 * the values likewise, and a map around both. Spark's functions for maps look every key up to find doubled ones; here
 * none can be doubled, once the residual has lost those that a sidecar has too.
 */
public class WholeMap {
  private static final int FEW = 12;
  private static final int MANY = 30;
  private static final GenericArrayData NONE = new GenericArrayData(new Object[0]);
  private static final ArrayBasedMapData EMPTY = new ArrayBasedMapData(NONE, NONE); // one, for maps have no equality

  private final Expression residual;
  private final MapType type;
  private final List<Part> parts;

  public WholeMap(Expression residual, List<Part> parts) {
    this.residual = residual;
    this.type = (MapType) residual.dataType();
    this.parts = parts;
  }

  /** A key of its own. */
  public static class Part {
    final UTF8String key;
    final Expression sidecar;
    final boolean maybe; // the residual may have this key as well

    Part(String key, Expression sidecar, boolean maybe) {
      this.key = UTF8String.fromString(key);
      this.sidecar = sidecar;
      this.maybe = maybe;
    }
  }

  public Expression map() {
    if (parts.isEmpty()) {
      return residual;
    }
    Expression base = base();
    Seq both = Seqs.seq(keysOf(base), valuesOf(base));
    return orNull(new NewInstance(ArrayBasedMapData.class, both, Seqs.seq(), true, type, scala.Option.empty()));
  }

  public Expression mapKeys() {
    return parts.isEmpty() ? (Expression) new MapKeys(residual) : orNull(keysOf(base()));
  }

  public Expression mapValues() {
    return parts.isEmpty() ? (Expression) new MapValues(residual) : orNull(valuesOf(base()));
  }

  /** The number of keys, null where there is no map; null instead of an expression when some may be doubled. */
  public Expression size() {
    Expression count = new Size(residual, false);
    for (Part part : parts) {
      if (part.maybe) {
        return null;
      }
      Expression none = new Literal(Integer.valueOf(0), DataTypes.IntegerType);
      count = new Add(count, new If(new IsNull(part.sidecar), none, new Literal(Integer.valueOf(1), none.dataType())));
    }
    return count;
  }

  private Expression keysOf(Expression base) {
    ArrayList arrays = arrays(new MapKeys(base), true);
    if (parts.size() > MANY) {
      arrays.add(nothing());
    }
    return new Concat(Seqs.seqOf(arrays));
  }

  private Expression valuesOf(Expression base) {
    return new Concat(Seqs.seqOf(arrays(new MapValues(base), false)));
  }

  private ArrayList arrays(Expression first, boolean ofKeys) {
    ArrayList arrays = new ArrayList();
    arrays.add(first);
    for (int i = 0; i < parts.size(); i += step()) {
      arrays.add(some(parts.subList(i, Math.min(i + step(), parts.size())), new ArrayList(), ofKeys));
    }
    return arrays;
  }

  /** Arrays of up to three keys are fastest; but that makes long methods, and Java does not compile the longest. */
  private int step() {
    return parts.size() <= FEW ? 3 : 1;
  }

  /** An array of the keys, or values, of those sidecars that are filled, with a branch for each way this can be. */
  private Expression some(List<Part> open, List<Part> filled, boolean ofKeys) {
    if (open.isEmpty()) {
      return ofKeys ? literalKeys(filled) : values(filled);
    }
    Part first = (Part) open.get(0);
    List others = open.subList(1, open.size());
    ArrayList more = new ArrayList(filled);
    more.add(first);
    return new If(new IsNull(first.sidecar), some(others, filled, ofKeys), some(others, more, ofKeys));
  }

  private static Expression literalKeys(List<Part> filled) {
    ArrayList keys = new ArrayList();
    for (Part part : filled) {
      keys.add(part.key);
    }
    return array(keys.toArray(), DataTypes.StringType);
  }

  private Expression values(List<Part> filled) {
    ArrayList values = new ArrayList();
    for (Part part : filled) {
      values.add(part.sidecar);
    }
    return values.isEmpty() ? array(new Object[0], type.valueType()) : new CreateArray(Seqs.seqOf(values), false);
  }

  private static Expression array(Object[] elements, DataType type) {
    return new Literal(new GenericArrayData(elements), new ArrayType(type, false));
  }

  /**
   * No keys at all, by a function that Spark interprets. It keeps the whole projection out of the one long method that
   * Spark writes for a stage, which Java would interpret as well; outside of it Spark writes many short ones.
   */
  private static Expression nothing() {
    NamedLambdaVariable key = variable("key", DataTypes.StringType, false);
    Expression all = new LambdaFunction(new IsNotNull(key), Seqs.seq(key), false);
    return new ArrayFilter(array(new Object[0], DataTypes.StringType), all);
  }

  /** The residual without the keys that a sidecar answers; where it is null and a sidecar is not, it has no keys. */
  private Expression base() {
    NamedLambdaVariable key = variable("key", type.keyType(), false);
    NamedLambdaVariable value = variable("value", type.valueType(), true);
    Expression shadowed = null;
    for (Part part : parts) {
      if (part.maybe) {
        Expression isKey = new EqualTo(key, new Literal(part.key, DataTypes.StringType));
        Expression both = new And(isKey, new IsNotNull(part.sidecar));
        shadowed = shadowed == null ? both : new Or(shadowed, both);
      }
    }
    if (shadowed == null) {
      return residual;
    }
    Expression whole = new Coalesce(Seqs.seq(residual, new Literal(EMPTY, type)));
    return new MapFilter(whole, new LambdaFunction(new Not(shadowed), Seqs.seq(key, value), false));
  }

  private static NamedLambdaVariable variable(String name, DataType type, boolean nullable) {
    return new NamedLambdaVariable(name, type, nullable, NamedExpression$.MODULE$.newExprId(), new AtomicReference());
  }

  /** What was found, but null where there is no map: no residual, and no sidecar that could do without one. */
  private Expression orNull(Expression whole) {
    Expression missing = new IsNull(residual);
    boolean any = false;
    for (Part part : parts) {
      if (part.maybe) {
        any = true;
        missing = new And(missing, new IsNull(part.sidecar));
      }
    }
    return any ? new If(missing, Literal.create(null, whole.dataType()), whole) : whole;
  }
}
