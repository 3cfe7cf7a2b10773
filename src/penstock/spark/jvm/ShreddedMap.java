package io.penstock;

import java.util.ArrayList;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.catalyst.expressions.ArrayContains;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetMapValue;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MapKeys;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A map whose hot keys lie in columns of their own, the sidecars, beside a residual map with the others. It is known to
 * the optimizer only: `HotKeys` answers single keys from the sidecars, and what is left is lowered to Spark's own
 * expressions before anything is planned, because executors do not have this class.
 *
 * How far a sidecar s of key k can be trusted is its state:
 *
 *   state         m['k']                    map_contains_key(m, 'k')                  the whole map
 *   MAYBE         coalesce(s, residual[k])  s is not null, or the residual has it     s wins over the residual
 *   VALUE         s                         the same, because of explicit nulls       s beside the residual
 *   EXACT         s                         s is not null; no map is null             s beside the residual
 *   MIRROR_VALUE  s                         the residual has it                       the residual
 *   MIRROR_EXACT  s                         s is not null; no map is null             the residual
 *
 * The map is null where the residual is null and no sidecar in state MAYBE is filled. The others are null where it is.
 */
public class ShreddedMap extends Expression {
  /* Spark keeps for every tree which of these marks occur in it. What it does with this one is look, and no more. */
  private static final scala.Enumeration.Value MARK = TreePattern$.MODULE$.MAP_OBJECTS();

  private final Seq children; // the residual, then the sidecars
  private final Seq keys; // of String
  private final Seq states; // of String
  private transient Expression executable;

  public ShreddedMap(Seq children, Seq keys, Seq states) {
    this.children = children;
    this.keys = keys;
    this.states = states;
  }

  /** A column of such a map; keys and states are texts. */
  public static Column column(Column residual, ArrayList keys, ArrayList sidecars, ArrayList states) {
    ArrayList children = new ArrayList();
    children.add(ExpressionUtils.expression(residual));
    for (int i = 0; i < sidecars.size(); i++) {
      children.add(ExpressionUtils.expression((Column) sidecars.get(i)));
    }
    return ExpressionUtils.column(new ShreddedMap(Seqs.seqOf(children), Seqs.seqOf(keys), Seqs.seqOf(states)));
  }

  /** Whether a plan or an expression may hold such a map; false is certain. */
  public static boolean mayBeIn(TreeNode tree) {
    return tree.containsPattern(MARK);
  }

  /** The value of one key, or whether the map has it, by whatever is least to read. */
  public Expression answer(Literal key, boolean contains) {
    int i = keys.indexOf(key.value().toString());
    if (contains) {
      return i >= 0 && isExact(i) ? (Expression) new IsNotNull(sidecar(i)) : contained(key, i);
    }
    Expression cold = new GetMapValue(residual(), key);
    if (i < 0) {
      return cold;
    }
    return isMaybe(i) ? (Expression) new Coalesce(Seqs.seq(sidecar(i), cold)) : sidecar(i);
  }

  private Expression contained(Literal key, int i) {
    Expression inResidual = new ArrayContains(new MapKeys(residual()), key);
    Expression filled = anyMaybe();
    if (filled != null && residual().nullable()) {
      Expression none = Literal.create(null, DataTypes.BooleanType);
      Expression empty = new If(filled, new Literal(Boolean.FALSE, DataTypes.BooleanType), none);
      inResidual = new Coalesce(Seqs.seq(inResidual, empty));
    }
    return i < 0 || isMirror(i) ? inResidual : new Or(new IsNotNull(sidecar(i)), inResidual);
  }

  /** Whether the map itself is there. */
  public Expression isThere() {
    for (int i = 0; i < keys.size(); i++) {
      if (isExact(i)) {
        return new Literal(Boolean.TRUE, DataTypes.BooleanType);
      }
    }
    Expression there = new IsNotNull(residual());
    Expression filled = anyMaybe();
    return filled == null ? there : new Or(there, filled);
  }

  /** Whether a sidecar that makes a map out of a null residual is filled; null when there is none of these. */
  private Expression anyMaybe() {
    Expression any = null;
    for (int i = 0; i < keys.size(); i++) {
      if (isMaybe(i)) {
        Expression filled = new IsNotNull(sidecar(i));
        any = any == null ? filled : new Or(any, filled);
      }
    }
    return any;
  }

  /** The whole map, or only its keys or values, as Spark's own expressions put it together. */
  public WholeMap whole() {
    ArrayList moved = new ArrayList();
    for (int i = 0; i < keys.size(); i++) {
      if (!isMirror(i)) {
        moved.add(new WholeMap.Part((String) keys.apply(i), sidecar(i), isMaybe(i)));
      }
    }
    return new WholeMap(residual(), moved);
  }

  private Expression residual() {
    return (Expression) children.apply(0);
  }

  private Expression sidecar(int i) {
    return (Expression) children.apply(i + 1);
  }

  private boolean isMaybe(int i) {
    return states.apply(i).equals("MAYBE");
  }

  private boolean isExact(int i) {
    return ((String) states.apply(i)).endsWith("EXACT");
  }

  private boolean isMirror(int i) {
    return ((String) states.apply(i)).startsWith("MIRROR");
  }

  public boolean nullable() {
    return residual().nullable();
  }

  public DataType dataType() {
    return residual().dataType();
  }

  public TypeCheckResult checkInputDataTypes() {
    if (!(residual().dataType() instanceof MapType)) {
      return wrong("the residual must be a map", residual().dataType());
    }
    MapType map = (MapType) residual().dataType();
    if (!DataTypes.StringType.equals(map.keyType())) {
      return wrong("the keys of the map must be STRING", map.keyType());
    }
    for (int i = 0; i < keys.size(); i++) {
      if (!sidecar(i).dataType().equals(map.valueType())) {
        return wrong("the sidecar of " + keys.apply(i) + " must be " + map.valueType().sql(), sidecar(i).dataType());
      }
    }
    return super.checkInputDataTypes();
  }

  private static TypeCheckResult wrong(String expected, DataType actual) {
    return new TypeCheckResult.TypeCheckFailure(expected + ", not " + actual.sql());
  }

  /* Spark evaluates expressions over literal rows while it optimizes. */
  public Object eval(InternalRow row) {
    return executable().eval(row);
  }

  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return executable().genCode(context);
  }

  private Expression executable() {
    if (executable == null) {
      executable = whole().map();
    }
    return executable;
  }

  public Seq nodePatterns() {
    return Seqs.seq(MARK);
  }

  public Seq children() {
    return children;
  }

  public TreeNode withNewChildrenInternal(IndexedSeq changed) {
    return new ShreddedMap(changed, keys, states);
  }

  /* Spark copies nodes by their constructor, with what these give. */
  public int productArity() {
    return 3;
  }

  public Object productElement(int i) {
    return i == 0 ? children : i == 1 ? keys : states;
  }

  public boolean canEqual(Object other) {
    return other instanceof ShreddedMap;
  }

  public boolean equals(Object other) {
    if (!(other instanceof ShreddedMap)) {
      return false;
    }
    ShreddedMap map = (ShreddedMap) other;
    return children.equals(map.children) && keys.equals(map.keys) && states.equals(map.states);
  }

  public int hashCode() {
    return 31 * (31 * children.hashCode() + keys.hashCode()) + states.hashCode();
  }

  public String prettyName() {
    return "shredded_map";
  }

  public String toString() {
    return text(false);
  }

  public String sql() {
    return text(true);
  }

  private String text(boolean sql) {
    StringBuilder text = new StringBuilder("shredded_map(").append(sql ? residual().sql() : residual().toString());
    for (int i = 0; i < keys.size(); i++) {
      text.append(", ").append(keys.apply(i)).append(" ").append(((String) states.apply(i)).toLowerCase()).append(": ")
          .append(sql ? sidecar(i).sql() : sidecar(i).toString());
    }
    return text.append(")").toString();
  }
}
