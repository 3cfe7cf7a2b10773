package io.penstock;

import java.util.ArrayList;
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
  private final ArrayList keys; // of UTF8String
  private final ArrayList sidecars; // of Expression
  private final ArrayList maybe; // of Boolean: the residual may have this key as well

  public WholeMap(Expression residual, ArrayList keys, ArrayList sidecars, ArrayList maybe) {
    this.residual = residual;
    this.type = (MapType) residual.dataType();
    this.keys = keys;
    this.sidecars = sidecars;
    this.maybe = maybe;
  }

  public Expression map() {
    if (sidecars.isEmpty()) {
      return residual;
    }
    Expression base = base();
    Seq both = PlannedFiles.seq(new Object[] {keysOf(base), valuesOf(base)});
    Seq untyped = PlannedFiles.seq(new Object[0]);
    return orNull(new NewInstance(ArrayBasedMapData.class, both, untyped, true, type, scala.Option.empty()));
  }

  public Expression mapKeys() {
    return sidecars.isEmpty() ? (Expression) new MapKeys(residual) : orNull(keysOf(base()));
  }

  public Expression mapValues() {
    return sidecars.isEmpty() ? (Expression) new MapValues(residual) : orNull(valuesOf(base()));
  }

  /** The number of keys, null where there is no map; null instead of an expression when some may be doubled. */
  public Expression size() {
    Expression count = new Size(residual, false);
    for (int i = 0; i < sidecars.size(); i++) {
      if (isMaybe(i)) {
        return null;
      }
      count = new Add(count, new If(new IsNull(sidecar(i)), number(0), number(1)));
    }
    return count;
  }

  private static Expression number(int value) {
    return new Literal(Integer.valueOf(value), DataTypes.IntegerType);
  }

  private Expression keysOf(Expression base) {
    ArrayList parts = parts(new MapKeys(base), true);
    if (keys.size() > MANY) {
      parts.add(nothing());
    }
    return new Concat(PlannedFiles.seq(parts));
  }

  private Expression valuesOf(Expression base) {
    return new Concat(PlannedFiles.seq(parts(new MapValues(base), false)));
  }

  private ArrayList parts(Expression first, boolean ofKeys) {
    ArrayList parts = new ArrayList();
    parts.add(first);
    for (int i = 0; i < keys.size(); i += step()) {
      parts.add(some(i, Math.min(i + step(), keys.size()), new ArrayList(), ofKeys));
    }
    return parts;
  }

  /** Arrays of up to three keys are fastest; but that makes long methods, and Java does not compile the longest. */
  private int step() {
    return keys.size() <= FEW ? 3 : 1;
  }

  /** An array of the keys, or values, of those sidecars that are filled, with a branch for each way this can be. */
  private Expression some(int from, int to, ArrayList filled, boolean ofKeys) {
    if (from == to) {
      return ofKeys ? literalKeys(filled) : values(filled);
    }
    ArrayList more = new ArrayList(filled);
    more.add(Integer.valueOf(from));
    return new If(
        new IsNull(sidecar(from)), some(from + 1, to, filled, ofKeys), some(from + 1, to, more, ofKeys));
  }

  private Expression literalKeys(ArrayList places) {
    Object[] literals = new Object[places.size()];
    for (int i = 0; i < literals.length; i++) {
      literals[i] = keys.get(((Integer) places.get(i)).intValue());
    }
    return array(literals, DataTypes.StringType);
  }

  private Expression values(ArrayList places) {
    if (places.isEmpty()) {
      return array(new Object[0], type.valueType());
    }
    ArrayList elements = new ArrayList();
    for (int i = 0; i < places.size(); i++) {
      elements.add(sidecar(((Integer) places.get(i)).intValue()));
    }
    return new CreateArray(PlannedFiles.seq(elements), false);
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
    Expression all = new LambdaFunction(new IsNotNull(key), PlannedFiles.seq(new Object[] {key}), false);
    return new ArrayFilter(array(new Object[0], DataTypes.StringType), all);
  }

  /** The residual without the keys that a sidecar answers; where it is null and a sidecar is not, it has no keys. */
  private Expression base() {
    NamedLambdaVariable key = variable("key", type.keyType(), false);
    NamedLambdaVariable value = variable("value", type.valueType(), true);
    Expression shadowed = null;
    for (int i = 0; i < sidecars.size(); i++) {
      if (isMaybe(i)) {
        Expression both = new And(
            new EqualTo(key, new Literal(keys.get(i), DataTypes.StringType)), new IsNotNull(sidecar(i)));
        shadowed = shadowed == null ? both : new Or(shadowed, both);
      }
    }
    if (shadowed == null) {
      return residual;
    }
    Expression whole = new Coalesce(PlannedFiles.seq(new Object[] {residual, new Literal(EMPTY, type)}));
    Seq arguments = PlannedFiles.seq(new Object[] {key, value});
    return new MapFilter(whole, new LambdaFunction(new Not(shadowed), arguments, false));
  }

  private static NamedLambdaVariable variable(String name, DataType type, boolean nullable) {
    return new NamedLambdaVariable(name, type, nullable, NamedExpression$.MODULE$.newExprId(), new AtomicReference());
  }

  /** What was found, but null where there is no map: no residual, and no sidecar that could do without one. */
  private Expression orNull(Expression part) {
    Expression missing = new IsNull(residual);
    boolean any = false;
    for (int i = 0; i < sidecars.size(); i++) {
      if (isMaybe(i)) {
        any = true;
        missing = new And(missing, new IsNull(sidecar(i)));
      }
    }
    return any ? new If(missing, Literal.create(null, part.dataType()), part) : part;
  }

  private boolean isMaybe(int i) {
    return ((Boolean) maybe.get(i)).booleanValue();
  }

  private Expression sidecar(int i) {
    return (Expression) sidecars.get(i);
  }

  /** A key as Catalyst has it. */
  public static UTF8String key(String text) {
    return UTF8String.fromString(text);
  }
}
