import { type Database, type Trx, write } from './database.ts'

/**
 * Runs at the end of a use case's transaction, for what must become durable together with its result, such as the answer
 * to an Idempotency-Key. A transaction that is tried again runs it again.
 */
export type BeforeCommit<Result> = (trx: Trx, result: Result) => Promise<void>

/** Runs `work` and then `beforeCommit` in one write transaction; `how` is `writeBeside` where rows are locked by `work`. */
export function writeWith<Result>(
  database: Database,
  work: (trx: Trx) => Promise<Result>,
  beforeCommit: BeforeCommit<Result> = async () => {},
  how: typeof write = write,
): Promise<Result> {
  return how(database, async trx => {
    const result = await work(trx)
    await beforeCommit(trx, result)
    return result
  })
}
