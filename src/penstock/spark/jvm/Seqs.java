package io.penstock;

import java.util.Arrays;
import java.util.List;

import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Scala's sequences and Java's lists. */
public class Seqs {
  public static Seq seq(Object... elements) {
    return seqOf(Arrays.asList(elements));
  }

  /** A sequence with the elements that a list has now. */
  public static Seq seqOf(List elements) {
    return ((scala.collection.Iterable) CollectionConverters.asScala(elements)).toSeq();
  }

  /** A sequence as a list that cannot be changed. */
  public static List list(scala.collection.Seq elements) {
    return CollectionConverters.asJava(elements);
  }
}
