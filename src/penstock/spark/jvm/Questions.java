package io.penstock;

import java.lang.ref.Cleaner;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Questions of Spark's threads to Python. Python fetches them over its own, authenticated connection to the JVM, and
 * brings the answers back: nothing on Python's side listens for connections.
 */
public class Questions {
  private static final long SILENCE_NANOS = TimeUnit.MINUTES.toNanos(5);
  private static final Cleaner CLEANER = Cleaner.create();
  private static final LinkedBlockingQueue WAITING = new LinkedBlockingQueue();
  private static final ConcurrentHashMap ASKED = new ConcurrentHashMap();
  private static final ConcurrentHashMap HELD = new ConcurrentHashMap();
  private static final AtomicLong NUMBERS = new AtomicLong();
  private static volatile long lastFetch = System.nanoTime();

  /** Ask, and wait for the answer as long as Python fetches questions. */
  public static String ask(String request) {
    Question question = new Question();
    String number = String.valueOf(NUMBERS.incrementAndGet());
    ASKED.put(number, question);
    WAITING.add(number + " " + request);
    try {
      while (!question.answered.await(1, TimeUnit.SECONDS)) {
        if (System.nanoTime() - lastFetch > SILENCE_NANOS) {
          throw new IllegalStateException("Penstock could not be asked: its Python process does not answer");
        }
      }
      return question.answer;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while planning", error);
    } finally {
      ASKED.remove(number);
    }
  }

  /** The next question, behind its number; null when there is none for some time. Number 0 says that a source is not needed. */
  public String fetch(long millis) throws InterruptedException {
    lastFetch = System.nanoTime();
    String question = (String) WAITING.poll(millis, TimeUnit.MILLISECONDS);
    lastFetch = System.nanoTime();
    return question;
  }

  /** The answer to a question; whoever asked may have been interrupted meanwhile. */
  public void answer(String number, String text) {
    Question question = (Question) ASKED.get(number);
    if (question != null) {
      question.answer = text;
      question.answered.countDown();
    }
  }

  /** Keep an object until Python has taken it; its name. */
  public static String hold(Object object) {
    String name = String.valueOf(NUMBERS.incrementAndGet());
    HELD.put(name, object);
    return name;
  }

  /** An object that is kept under a name. */
  public static Object held(String name) {
    return HELD.get(name);
  }

  public static Object drop(String name) {
    return HELD.remove(name);
  }

  /** Tell Python when an object is garbage that the source of this name has one user less. */
  public static void releaseWith(Object user, String source) {
    CLEANER.register(user, new Release(source));
  }

  private static class Question {
    final CountDownLatch answered = new CountDownLatch(1);
    volatile String answer;
  }

  private static class Release implements Runnable {
    private final String source;

    Release(String source) {
      this.source = source;
    }

    public void run() {
      WAITING.add("0 " + source);
    }
  }
}
