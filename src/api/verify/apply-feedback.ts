import type { Context } from 'hono'
import { writeAsyncCommit } from '../../db/database.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import type { Env } from '../context.ts'
import type { Service } from '../service.ts'

/** Applies the feedback of the account to results, and stores their verdicts for later feedback. */
export async function applyFeedback(
  c: Context<Env>,
  { feedback, database }: Service,
  results: readonly Result[],
): Promise<readonly Result[]> {
  const accountId = c.get('caller').account.id
  if (c.get('sandbox') || !(await feedback.isEnrolled(accountId))) return results
  return writeAsyncCommit(database, trx => feedback.adjust(trx, accountId, results))
}

/** The same for one result. */
export async function applyFeedbackToOne(
  c: Context<Env>,
  service: Service,
  result: Result,
): Promise<Result> {
  const [adjusted = result] = await applyFeedback(c, service, [result])
  return adjusted
}
