import { type Database, writeAsyncCommit } from '../db/database.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import { FeedbackKnowledge, type FeedbackSettings } from '../feedback/knowledge.ts'
import { errorMessage } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { openListDatabase } from './database.ts'
import type { DatabaseLocation } from './database-location.ts'
import { printMessage } from './print.ts'

/** Applies the feedback of the command line to results of `ev verify`. */
export type LocalFeedback = {
  /** Never rejects: if the database fails, returns the result unchanged. */
  adjust(result: Result): Promise<Result>
  close(): Promise<void>
}

/** The owner of lists and feedback of the command line. */
const OWNER = ''

/**
 * Opens the database of the command line; null if it has no feedback. A failure is a warning, not
 * an error: it does not concern the address.
 */
export async function openLocalFeedback(
  context: CliContext,
  config: DatabaseLocation & FeedbackSettings,
): Promise<LocalFeedback | null> {
  let hasWarned = false
  const orWarn = async <T>(run: () => Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await run()
    } catch (error) {
      const why = sanitizeText(errorMessage(error))
      if (!hasWarned) printMessage(context, 'warning', `Feedback is not used: ${why}`)
      hasWarned = true
      return otherwise
    }
  }
  const database = await orWarn<Database | null>(() => openListDatabase(context, config), null)
  if (database === null) return null
  const knowledge = new FeedbackKnowledge(database, config)
  if (!(await orWarn(() => knowledge.isEnrolled(OWNER), false))) {
    await database.close()
    return null
  }
  const adjust = (result: Result) =>
    writeAsyncCommit(database, trx => knowledge.adjust(trx, OWNER, [result]))
  return {
    adjust: result => orWarn(async () => (await adjust(result))[0] ?? result, result),
    close: () => database.close(),
  }
}
