/** The right to one entry, until it is given to somebody else: `attempt` is another each time. */
export type Claim = { readonly key: string; readonly id: string; readonly attempt: number }

/** An entry that is to be worked on in `waitMs`. */
export type Wanted = { readonly key: string; readonly waitMs: number }

/** What was worked on, and in how many ms it is due again; null: it is done with. */
export type Ended = { readonly claim: Claim; readonly waitMs: number | null }

/** In how many ms it is due again; null: it is gone. What is lost was another's already, and stays as it was. */
export type Fate = number | null | 'lost'

/**
 * The entries of one kind, where all processes find them. Times are told as durations: machines do not agree on the
 * time. Whatever fails does so for all that was handed in, and may be tried again.
 */
export interface Entries {
  /** One that waits keeps the earlier time; one that runs is due again when its run ends. */
  put(wanted: readonly Wanted[]): Promise<void>
  /** Claims entries that are due: who was put first is first. */
  take(max: number): Promise<Claim[]>
  /** What became of each, in the same order. */
  end(ended: readonly Ended[]): Promise<readonly Fate[]>
  /** Keeps claims, and gives the IDs of those that still hold. */
  touch(claims: readonly Claim[]): Promise<ReadonlySet<string>>
}
