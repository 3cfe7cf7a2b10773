// The page starts here: with the data in it, and in the served page with a field to type another predicate into.

const data = JSON.parse(byId("data").textContent);
let waiting = null;
let running = null;

function tellProblem(problem) {
  const lines = problem ? [problem.message, ...(problem.excerpt ? [problem.excerpt] : [])] : [];
  byId("problem").replaceChildren(...(problem ? [el("pre", {}, lines.join("\n"))] : []));
  byId("where").setAttribute("aria-invalid", String(Boolean(problem)));
}

async function ask(refresh) {
  clearTimeout(waiting);
  running?.abort();
  const own = running = new AbortController();
  const where = byId("where").value.trim();
  const query = new URLSearchParams({ where, ...(refresh ? { refresh: "1" } : {}) });
  document.querySelector("main").classList.add("busy");
  try {
    const answer = await fetch(`/plan?${query}`, { signal: own.signal, headers: { accept: "application/json" } });
    const view = await answer.json();
    if (own !== running) return;
    tellProblem(view.error);
    if (view.error) return;
    history.replaceState(null, "", where ? `/?${new URLSearchParams({ where })}` : "/");
    showAll(view);
    byId("status").textContent = headline(view);
  } catch (error) {
    if (error.name !== "AbortError") tellProblem({ message: "The server does not answer; is penstock serve still running?" });
  } finally {
    if (own === running) document.querySelector("main").classList.remove("busy");
  }
}

function listen({ where, error }) {
  const field = byId("where");
  byId("ask").hidden = false;
  field.value = where;
  tellProblem(error);
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => ask(), 400); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); ask(); }
  });
  byId("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  byId("refresh").addEventListener("click", () => ask(true));
}

document.body.append(patterns());
showAll(data);
if (data.live) listen(data.live);
