import { accountIn } from '../../accounts/account-store.ts'
import { createUsageLedger, type UsageLedger } from '../../accounts/credits/usage-ledger.ts'
import { permits } from '../../accounts/key-rights.ts'
import { type ApiKey, listKeys } from '../../accounts/key-store.ts'
import { findPlan, mergePlans, type Plan } from '../../accounts/plan.ts'
import type { Config } from '../../config/settings.ts'
import { type Database, write } from '../../db/database.ts'
import { cancelJob, deleteJob, finishJob } from '../../jobs/change-job.ts'
import { createDownloadUrl } from '../../jobs/download-url.ts'
import { jobError } from '../../jobs/errors.ts'
import { type Job, parseOrigin } from '../../jobs/job-store.ts'
import { resumeJob } from '../../jobs/resume-job.ts'
import {
  type ChangeCount,
  type ComparedResult,
  countChanges,
  findChanges,
} from '../../jobs/reverify/changes.ts'
import { inheritOptions, reverifyJob } from '../../jobs/reverify/reverify-job.ts'
import { DAY } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { isoTime } from '../../platform/format.ts'
import { silentLog } from '../../platform/log.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { auditServices } from '../database.ts'
import { jobContext, jobStatus, withJob } from '../jobs/job-status.ts'
import { toView } from '../jobs/job-view.ts'
import { deleteStdinCopy } from '../jobs/stdin-copy.ts'
import { isoTimeOrNull, timeText } from '../print.ts'
import {
  type ChangedJob,
  type ChangesView,
  type DownloadFile,
  isActive,
  isOfService,
  type JobsBackend,
  type Selection,
} from '../remote/jobs.ts'
import { requireBaseUrl } from '../serve/base-url.ts'
import { serviceSecretBox } from '../service-secret.ts'

type JobChanges = Omit<JobsBackend, 'location' | 'list' | 'get' | 'show'>

/** Changes jobs in the databases of this machine, and compares and shares their results. */
export function createJobChanges(context: CliContext, config: Config): JobChanges {
  const { clock, random } = context
  const withIt = <T>(id: string, work: (database: Database, job: Job) => Promise<T>) =>
    withJob(context, config, id, work)
  const changed = async (database: Database, job: Job): Promise<ChangedJob> => {
    const status = jobStatus(job, await jobContext(database, config))
    return { job: toView(job, status), isRunning: isActive(status) }
  }
  return {
    resume: id =>
      withIt(id, async (database, job) => {
        if (!isOfService(job)) return null
        // A running service picks it up within seconds.
        return withLedger(context, database, config, job, async (ledger, plan) =>
          changed(database, await resumeJob({ database, clock, ledger }, { job, plan })),
        )
      }),
    finish: id =>
      withIt(id, async (database, found) => {
        const { job } = await finishJob({ database, ...auditServices(context) }, found)
        return changed(database, job)
      }),
    cancel: id =>
      withIt(id, async (database, job) => {
        const before = await changed(database, job)
        const { isChanged } = await cancelJob({ database }, job)
        if (!isChanged) {
          throw jobError('job_not_cancellable', { id: job.id, state: 'cancelled' })
        }
        await deleteStdinCopy(database, config, job)
        return before
      }),
    delete: id =>
      withIt(id, async (database, job) => {
        const onDeleted = () => deleteStdinCopy(database, config, job)
        await deleteJob({ database, settings: config }, job, { isErased: true, onDeleted })
      }),
    reverify: (id, selected) =>
      withIt(id, (database, job) =>
        withLedger(context, database, config, job, async (ledger, plan) => {
          const services = { database, clock, random, ledger }
          const keyId = job.key_id ?? ''
          const options = inheritOptions(job)
          const selection = toSelection(context, selected)
          const created = await reverifyJob(services, { job, plan, keyId, selection, options })
          return { ...(await changed(database, created)), previousId: job.id }
        }),
      ),
    changes: (id, max) => withIt(id, (database, job) => readChanges(database, job, max)),
    downloadUrl: (id, file) =>
      withIt(id, async (database, job) => {
        checkJob(job, file)
        const baseUrl = await requireBaseUrl(database, config)
        const key = await selectKey(context, database, job, file.keyId)
        const secretBox = await serviceSecretBox(context, config, database)
        const services = { ...auditServices(context), secretBox, baseUrl }
        const { only: filter, ...rest } = file
        const { url, expiresAt } = await write(database, trx =>
          createDownloadUrl(trx, services, { ...rest, filter, job, key, secretExpiresAt: null }),
        )
        const note = limitsText(key, expiresAt)
        return { url, expires_at: isoTime(expiresAt), key_id: key.id, note }
      }),
  }
}

/** Calls `work` with the plan of the job's account and a ledger. */
async function withLedger<T>(
  context: CliContext,
  database: Database,
  config: Config,
  job: Job,
  work: (ledger: UsageLedger, plan: Plan) => Promise<T>,
): Promise<T> {
  const { clock, random } = context
  const plans = mergePlans(config.plans)
  const account = await accountIn(database.db, job.account_id ?? '')
  const ledger = createUsageLedger({ database, clock, random, log: silentLog, plans })
  try {
    return await work(ledger, findPlan(plans, account?.plan ?? ''))
  } finally {
    await ledger.stop()
  }
}

const toSelection = ({ clock }: CliContext, { only, olderThanDays }: Selection) => ({
  classes: only,
  checkedBefore: olderThanDays === undefined ? undefined : clock.now() - olderThanDays * DAY,
})

async function readChanges(database: Database, job: Job, max: number): Promise<ChangesView> {
  const counts = await countChanges(database, job.id)
  const scannedMax = Number.MAX_SAFE_INTEGER
  const { rows } = await findChanges(database, { jobId: job.id, after: 0, max, scannedMax })
  return {
    job_id: job.id,
    previous_job_id: parseOrigin(job).previousJobId,
    verified: sum(counts),
    changed: sum(counts.filter(({ from, to }) => from !== to)),
    counts,
    items: rows.map(({ position, text, before, after }) => ({
      row: position,
      email: text,
      before: presentCompared(before),
      after: presentCompared(after),
    })),
  }
}

const presentCompared = ({ class: klass, reason, checkedAt }: ComparedResult) => ({
  class: klass,
  reason,
  checked_at: isoTimeOrNull(checkedAt),
})

const sum = (counts: readonly ChangeCount[]) =>
  counts.reduce((total, { count }) => total + count, 0)

function checkJob(job: Job, { partial }: DownloadFile): void {
  if (!isOfService(job)) {
    throw new EvError(
      'usage',
      `${job.id} is a list of "ev bulk", which writes its results to a file. Only results of "ev serve" have a URL.`,
    )
  }
  if (job.state === 'completed' || partial) return
  throw new EvError(
    'usage',
    `${job.id} is ${job.state}, so its results are incomplete. To share the existing ones, add --partial.`,
  )
}

/**
 * Returns the key whose rights the URL has. Without a choice it is one that restricts the recipient
 * least: a key without restrictions before others, then the key of the job before others.
 */
async function selectKey(
  context: CliContext,
  database: Database,
  job: Job,
  keyId: string | undefined,
): Promise<ApiKey> {
  const now = context.clock.now()
  const keys = await listKeys(database, job.account_id ?? '')
  const usable = keys.filter(key => canRead(key, job, now))
  if (keyId !== undefined) {
    const chosen = usable.find(({ id }) => id === keyId)
    if (chosen !== undefined) return chosen
    const isKnown = keys.some(({ id }) => id === keyId)
    throw isKnown ? unsuitableKey(keyId, job) : unknownKey(keyId, job)
  }
  const isOpen = (key: ApiKey) => !isRestricted(key)
  const isOfJob = ({ id }: ApiKey) => id === job.key_id
  const best = usable.find(key => isOpen(key) && isOfJob(key)) ?? usable.find(isOpen)
  const key = best ?? usable.find(isOfJob) ?? usable[0]
  if (key !== undefined) return key
  throw new EvError(
    'usage',
    `No API key of account ${job.account_id} can read the results of ${job.id}. Create one: ev keys create --name NAME --scopes jobs:read --account ${job.account_id}`,
  )
}

/** Whether the service would return the results of the job to this key. */
const canRead = ({ scopes, expiresAt, isTest }: ApiKey, job: Job, now: number) =>
  permits(scopes, 'jobs:read') &&
  (expiresAt === null || expiresAt > now) &&
  (!isTest || job.sandbox === 1)

const isRestricted = ({ allowedIps, allowedDomains }: ApiKey) =>
  allowedIps.length > 0 || allowedDomains.length > 0

const unknownKey = (keyId: string, { account_id }: Job) =>
  new EvError(
    'no_input',
    `Account ${account_id} has no key ${sanitizeText(keyId)}. To list keys, run "ev keys".`,
  )

const unsuitableKey = (keyId: string, { id }: Job) =>
  new EvError(
    'usage',
    `Key ${keyId} cannot read the results of ${id}: it has expired, is a test key, or lacks the scope jobs:read. Name another key, or omit --key.`,
  )

function limitsText(key: ApiKey, expiresAt: number): string {
  const name = `${key.id} "${sanitizeText(key.name)}"`
  const only = isRestricted(key) ? ' Only the addresses and domains allowed for that key work.' : ''
  return `The URL works for everyone until ${timeText(expiresAt)}. It ends earlier if key ${name} is revoked, rotated or expired, or if the job is deleted.${only}`
}
