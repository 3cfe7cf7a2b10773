package io.penstock;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;

import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Option;

/** Nodes of plans whose constructors have more parameters in newer versions of Spark. */
public class Copies {
  /** `node.copy(…)` with another argument at one place. */
  public static LogicalPlan with(LogicalPlan node, int place, Object argument) {
    Object[] arguments = new Object[node.productArity()];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = i == place ? argument : node.productElement(i);
    }
    return (LogicalPlan) node.makeCopy(arguments);
  }

  /** An append whose rows are those of a query, and of the same one as it was analyzed. */
  public static AppendData append(NamedRelation target, LogicalPlan query, LogicalPlan analyzed) {
    Constructor constructor = AppendData.class.getConstructors()[0];
    Object options = scala.collection.immutable.Map$.MODULE$.empty();
    ArrayList arguments = new ArrayList(
        Arrays.asList(target, query, options, Boolean.FALSE, Option.empty(), Option.apply(analyzed)));
    if (constructor.getParameterTypes().length > arguments.size()) {
      arguments.add(4, Boolean.FALSE); // whether the table's schema follows that of the rows
    }
    try {
      return (AppendData) constructor.newInstance(arguments.toArray());
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("this version of Spark is not supported", error);
    }
  }
}
