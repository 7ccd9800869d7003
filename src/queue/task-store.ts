/** The right to work on one task: `attempt` changes each time the task is claimed. */
export type Claim = { readonly key: string; readonly id: string; readonly attempt: number }

/** Tasks of one kind that are due now, shared by all processes. A call that fails may be repeated. */
export interface TaskStore {
  /** Adds tasks; a key that waits or runs already is refused without an error. */
  add(keys: readonly string[]): Promise<void>
  /** Claims tasks, those first that were added first. */
  claim(max: number): Promise<Claim[]>
  /** Removes tasks whose claim still holds. */
  complete(claims: readonly Claim[]): Promise<void>
  /** Renews claims, and gives the IDs of those that still hold. */
  touch(claims: readonly Claim[]): Promise<ReadonlySet<string>>
}
