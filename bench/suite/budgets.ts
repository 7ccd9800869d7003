/**
 * The budget of a ratio: at least `min`, or at most `max`. `tolerance` is the share beyond it that
 * still passes, because two runs on one machine differ.
 */
export type Budget = { readonly tolerance: number } & (
  | { readonly min: number }
  | { readonly max: number }
)

export type Budgets = Readonly<Record<string, Budget>>

/** Returns a sentence for each ratio beyond its budget, and for each name without its counterpart. */
export function findOverruns(ratios: Readonly<Record<string, number>>, budgets: Budgets): string[] {
  const unmeasured = Object.keys(budgets).filter(name => !Object.hasOwn(ratios, name))
  return [
    ...Object.entries(ratios).flatMap(([name, ratio]) => {
      const budget = budgets[name]
      if (budget === undefined) return [`${name}: ${show(ratio)}, and there is no budget for it`]
      return isWithin(ratio, budget) ? [] : [`${name}: ${show(ratio)}, ${formatBudget(budget)}`]
    }),
    ...unmeasured.map(name => `${name}: there is a budget, but it was not measured`),
  ]
}

/** Returns the budgets with the measured ratios as their limits, as after an intended change. */
export function renewBudgets(ratios: Readonly<Record<string, number>>, budgets: Budgets): Budgets {
  return Object.fromEntries(
    Object.entries(budgets).map(([name, budget]) => {
      const ratio = ratios[name]
      if (ratio === undefined) return [name, budget]
      const limit = Number(ratio.toPrecision(3))
      const { tolerance } = budget
      return [name, 'min' in budget ? { min: limit, tolerance } : { max: limit, tolerance }]
    }),
  )
}

function isWithin(ratio: number, budget: Budget): boolean {
  return 'min' in budget
    ? ratio >= budget.min * (1 - budget.tolerance)
    : ratio <= budget.max * (1 + budget.tolerance)
}

/** Formats a budget: `at least 0.5 (−20%)`. */
export function formatBudget(budget: Budget): string {
  const percent = `${Math.round(budget.tolerance * 100)}%`
  return 'min' in budget
    ? `at least ${budget.min} (−${percent})`
    : `at most ${budget.max} (+${percent})`
}

const show = (ratio: number) => ratio.toFixed(2)
