/** The measurements of one part of the benchmarks. */
export type PartResult = {
  /** Ratios of two figures of the same run, by name, for `budgets.json`. */
  readonly ratios: Readonly<Record<string, number>>
  /** Tables in Markdown, for the page about performance. */
  readonly lines: readonly string[]
}

/** A part of the benchmarks, with a section of the page and of the budgets. */
export type Part = { measure(): Promise<PartResult> }
