package io.penstock;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;

import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Option;

/** Nodes of plans whose constructors have more parameters in newer versions of Spark. */
public class Copies {
  /** `node.copy(…)` with another argument at one place. */
  public static LogicalPlan with(LogicalPlan node, int place, Object argument) {
    try {
      Class type = node.getClass();
      Method copy = null;
      Method[] methods = type.getMethods();
      for (int i = 0; i < methods.length; i++) {
        if (methods[i].getName().equals("copy")) {
          copy = methods[i];
        }
      }
      Object[] arguments = new Object[copy.getParameterTypes().length];
      for (int i = 0; i < arguments.length; i++) {
        arguments[i] = type.getMethod("copy$default$" + (i + 1), new Class[0]).invoke(node, new Object[0]);
      }
      arguments[place] = argument;
      LogicalPlan changed = (LogicalPlan) copy.invoke(node, arguments);
      changed.copyTagsFrom(node);
      return changed;
    } catch (ReflectiveOperationException error) {
      throw unsupported(error);
    }
  }

  /** An append whose rows are those of a query as it was analyzed. */
  public static AppendData append(NamedRelation target, LogicalPlan query) {
    try {
      Constructor constructor = AppendData.class.getConstructors()[0];
      Class[] types = constructor.getParameterTypes();
      Object[] arguments = new Object[types.length];
      boolean hasWrite = false;
      for (int i = 0; i < types.length; i++) {
        if (types[i] == Boolean.TYPE) {
          arguments[i] = Boolean.FALSE;
        } else if (types[i] == Option.class) {
          arguments[i] = hasWrite ? Option.apply(query) : Option.empty(); // the write, then the analyzed query
          hasWrite = true;
        } else if (types[i] == NamedRelation.class) {
          arguments[i] = target;
        } else {
          arguments[i] = types[i] == LogicalPlan.class ? (Object) query : scala.collection.immutable.Map$.MODULE$.empty();
        }
      }
      return (AppendData) constructor.newInstance(arguments);
    } catch (ReflectiveOperationException error) {
      throw unsupported(error);
    }
  }

  private static IllegalStateException unsupported(ReflectiveOperationException error) {
    return new IllegalStateException("this version of Spark is not supported", error);
  }
}
