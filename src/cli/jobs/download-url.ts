import { permits } from '../../accounts/key-rights.ts'
import { type ApiKey, listKeys } from '../../accounts/key-store.ts'
import { type Database, write } from '../../db/database.ts'
import type { Vocabulary } from '../../formats/vocabulary/names.ts'
import { createDownloadUrl } from '../../jobs/download-url.ts'
import type { DeduplicateBy } from '../../jobs/import/import-counter.ts'
import type { Job } from '../../jobs/job-store.ts'
import { EvError } from '../../platform/error.ts'
import { isoTime } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { checkVocabulary } from '../bulk/output-plan.ts'
import type { Format } from '../bulk/row-text.ts'
import type { CliContext } from '../context.ts'
import { auditServices } from '../database.ts'
import { parseClasses } from '../flag-values.ts'
import { printJson, printMessage, timeText } from '../print.ts'
import { requireBaseUrl } from '../serve/base-url.ts'
import { serviceSecretBox } from '../service-secret.ts'
import { readConfig } from '../settings.ts'
import { isOfService, withJob } from './job-status.ts'

export type DownloadUrlFlags = {
  readonly format: Format
  readonly only?: string
  readonly raw?: boolean
  readonly deduplicate?: DeduplicateBy
  readonly vocabulary?: Vocabulary
  readonly partial?: boolean
  readonly key?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev jobs download-url` and returns the exit code. */
export function downloadUrlCommand(
  context: CliContext,
  id: string,
  flags: DownloadUrlFlags,
): Promise<number> {
  checkVocabulary(flags.vocabulary, flags.format)
  const config = readConfig(context, flags)
  const filter = flags.only === undefined ? undefined : parseClasses(flags.only)
  return withJob(context, config, id, async (database, job) => {
    checkJob(job, flags)
    const baseUrl = await requireBaseUrl(database, config)
    const key = await selectKey(context, database, job, flags.key)
    const secretBox = await serviceSecretBox(context, config, database)
    const services = { ...auditServices(context), secretBox, baseUrl }
    const { url, expiresAt } = await write(database, trx =>
      createDownloadUrl(trx, services, { ...flags, filter, job, key, secretExpiresAt: null }),
    )
    if (flags.json) {
      printJson(context, { url, expires_at: isoTime(expiresAt), key_id: key.id })
      return 0
    }
    context.stdout.write(`${url}\n`)
    printMessage(context, 'note', limitsText(key, expiresAt))
    return 0
  })
}

function checkJob(job: Job, { partial }: DownloadUrlFlags): void {
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
