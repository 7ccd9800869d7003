import { listAccounts } from '../../accounts/account-store.ts'
import { findPlan, mergePlans } from '../../accounts/plan.ts'
import { getLearnedReplySums } from '../../cluster/learned-replies.ts'
import { getNetwork } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import { type Database, openDatabase } from '../../db/database.ts'
import { getDayCounts, getVerdictCounts } from '../../feedback/feedback-counts.ts'
import { presentReplies, presentReport } from '../../feedback/present-report.ts'
import { recordFeedback } from '../../feedback/record-feedback.ts'
import { findContradictedReplies, REPLY_AGE_MAX_MS } from '../../feedback/replies.ts'
import { getReplySums } from '../../feedback/reply-counts.ts'
import { buildReport } from '../../feedback/report.ts'
import type { CliContext } from '../context.ts'
import { openExisting } from '../database.ts'
import { databaseUrl } from '../database-location.ts'
import type { FeedbackBackend, Report } from '../remote/feedback.ts'
import { selectAccount } from '../select-account.ts'

/** Imports feedback to an account in the database of this machine, or to the lists of `ev bulk`. */
export function createLocalFeedback(context: CliContext, config: Config): FeedbackBackend {
  return {
    async startImport(account) {
      const database = await openDatabase(databaseUrl(config), context.clock)
      try {
        const owner = await findOwner(database, account)
        const submission = {
          accountId: owner?.id ?? '',
          source: 'import',
          plan: owner === null ? null : findPlan(mergePlans(config.plans), owner.plan),
        }
        return {
          record: items => recordFeedback({ database }, { ...submission, items }),
          close: () => database.close(),
        }
      } catch (error) {
        await database.close()
        throw error
      }
    },
    async report(account) {
      const database = await openExisting(context, config)
      if (database === null) return { ...presentReport(buildReport([]), []), ...NO_REPLIES }
      try {
        return await readReport(context, config, database, account)
      } finally {
        await database.close()
      }
    },
  }
}

const NO_REPLIES = { contradicted_replies: [], learned_replies: [] } as const

/** Days with feedback in the JSON. */
const DAYS_SHOWN = 30
/** Learned replies in the report. */
const LEARNED_SHOWN = 20

async function readReport(
  context: CliContext,
  config: Config,
  database: Database,
  account: string | undefined,
): Promise<Report> {
  const owner = (await findOwner(database, account))?.id ?? ''
  const report = buildReport(await getVerdictCounts(database, owner))
  const days = await getDayCounts(database, owner, DAYS_SHOWN)
  const since = context.clock.now() - REPLY_AGE_MAX_MS
  return {
    ...presentReport(report, days),
    ...presentReplies(findContradictedReplies(await getReplySums(database, since))),
    learned_replies: await getLearnedReplySums(database, getNetwork(config), LEARNED_SHOWN),
  }
}

/** Returns the owner of feedback: null without accounts, for lists of `ev bulk`. */
async function findOwner(database: Database, account: string | undefined) {
  const accounts = await listAccounts(database)
  return accounts.length === 0 && account === undefined ? null : selectAccount(accounts, account)
}
