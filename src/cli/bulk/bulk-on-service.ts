import { createHash } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename } from 'node:path'
import type { EvClient } from '../../client/client.ts'
import { EvApiError } from '../../client/error.ts'
import type { Breakdown, Job, QueuedFile } from '../../client/types.ts'
import { CLASSES, type Class } from '../../engine/verdict/reason.ts'
import type { BounceProjection } from '../../feedback/projection.ts'
import { SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { formatDuration, formatNumber, pluralize } from '../../platform/format.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'
import { parseActions, parseMetadataFlags } from '../flag-values.ts'
import { type LiveOutput, openLiveOutput } from '../live-output.ts'
import { printJson, printMessage } from '../print.ts'
import { connectService, type ServiceFlags } from '../service.ts'
import { readConfig } from '../settings.ts'
import { startInterruption } from '../stop-signals.ts'
import { wrapLines } from '../width.ts'
import type { GivenFlags } from './bulk-on-machine.ts'
import { encodeSink } from './encoded-sink.ts'
import { checkExternalDate } from './external-date.ts'
import { openInput } from './list-file.ts'
import { downloadList, isUrl, nameOfUrl } from './list-url.ts'
import { nameFiles, type OutputFile, prepareOutput } from './output-plan.ts'
import { type OutputSink, openSink, publishAll } from './output-sink.ts'
import { refuseForeignFiles } from './own-output.ts'
import { createServiceProgress } from './progress.ts'
import type { Format } from './row-text.ts'
import { BOUNCES_EXIT_CODE, checkBounces, classLines, projectionLines } from './summary.ts'

/**
 * `ev bulk` on a service. It uploads the list as it is, waits for the job, and downloads the
 * results with the same options. The idempotency key is made from the list and the options, so the
 * same command finds the job again for as long as the service keeps the response: a run that was
 * interrupted goes on, and nothing is uploaded twice as two jobs.
 *
 * The service downloads a list at an http:// or https:// URL. The key is then made from the URL, at
 * which the list may have changed, so only a job that is not completed is found again. This machine
 * downloads a list in a bucket, because its credentials stay here, and a list that the service may
 * not download, such as one at a private address.
 */

type RemoteFlags = ServiceFlags & GivenFlags

/** What the steps of a run share. */
type Run = {
  readonly context: CliContext
  readonly client: EvClient
  readonly flags: RemoteFlags
  readonly live: LiveOutput
  readonly say: (text: string) => void
  /** Aborts with the first signal. */
  readonly signal: AbortSignal
  /** Whether the service sent a stored response, since the last call. */
  readonly takeReplayed: () => boolean
}

/** Runs `ev bulk` on a service and returns the exit code. */
export async function bulkOnService(
  context: CliContext,
  file: string,
  flags: RemoteFlags,
): Promise<number> {
  const { service, sandbox = false } = flags
  if (service === undefined) throw new Error('The command has no service.')
  const { list, output, format } = nameFiles(context, file, flags)
  checkExternalDate(flags)
  checkFailAbove(flags)
  const files = await prepareOutput(context, list, { ...flags, output, format })
  if (!flags.force) await refuseForeignFiles(null, files)
  const live = await openLiveOutput(context)
  const say = (text: string) => void (flags.quiet || live.print(`${wrapLines(text, live.width)}\n`))
  let isReplayed = false
  const client = await connectService(service, {
    sandbox,
    onAnswer: ({ replayed }) => {
      isReplayed ||= replayed
    },
  })
  const startedAt = context.clock.monotonicNow()
  const { signal, dispose } = startInterruption(context, 'the service keeps what it has')
  const takeReplayed = () => {
    const taken = isReplayed
    isReplayed = false
    return taken
  }
  const run = { context, client, flags, live, say, signal, takeReplayed }
  let jobId: string | null = null
  try {
    const { queued, isFound } = await submit(run, list)
    jobId = queued.job_id
    say(isFound ? foundText(queued) : submittedText(queued))
    const job = await waitForResults(run, jobId)
    await download(run, jobId, { files, format })
    const actions = flags.action === undefined ? {} : { action: parseActions(flags.action).join() }
    const breakdown = await client.jobs.breakdown(jobId, { ...actions, signal })
    const tookMs = context.clock.monotonicNow() - startedAt
    say(summaryText(job, breakdown, { tookMs, files, sandbox }))
    const check = checkSelected(breakdown, flags.failAbove)
    if (flags.json && output !== '-') {
      const summary = summaryObject(job, breakdown, { output, files, queued, sandbox })
      printJson(context, { ...summary, ...(check === null ? {} : check.object) })
    }
    if (check?.message == null) return 0
    printMessage(context, 'error', check.message)
    return BOUNCES_EXIT_CODE
  } catch (error) {
    if (!signal.aborted) throw error
    say(stoppedText(jobId))
    return EXIT_CODES.interrupted
  } finally {
    live.end()
    dispose()
  }
}

const stoppedText = (jobId: string | null) =>
  jobId === null
    ? 'Stopped. The list is not uploaded. To start over, run the same command again.'
    : `Stopped. The service continues ${jobId}. To go on, run the same command again; to stop the job, run "ev jobs cancel ${jobId}" with the same --url.`

/** The service counts all rows with an action, not those of a class, nor only the first of several. */
function checkFailAbove({ failAbove, only, deduplicate }: RemoteFlags): void {
  if (failAbove === undefined) return
  const given = only !== undefined ? '--only' : deduplicate !== undefined ? '--deduplicate' : null
  if (given === null) return
  throw new EvError(
    'usage',
    `--fail-above on a service counts the rows of --action, or all rows, and cannot be combined with ${given}. Omit one of them${given === '--only' ? ', or select the rows with --action' : ''}.`,
  )
}

/** Compares the bounces of mail to the rows of --action, or to all rows, with --fail-above. */
function checkSelected({ projection }: Breakdown['data'], limit: number | undefined) {
  if (limit === undefined) return null
  return checkBounces(toProjection(projection.selected ?? projection.before), limit)
}

type Submitted = {
  readonly queued: QueuedFile
  /** Whether it is the job of an earlier run. */
  readonly isFound: boolean
}

/** Sends the list, or finds the job of an earlier run. */
async function submit(run: Run, list: string): Promise<Submitted> {
  if (/^https?:/i.test(list)) {
    try {
      return await submitUrl(run, list)
    } catch (error) {
      if (!(error instanceof EvApiError && error.code === 'invalid_list_url')) throw error
      const why = sanitizeText(error.message, 500)
      run.say(`The service does not download the list, so this machine does: ${why}`)
    }
  }
  const queued = await upload(run, list)
  return { queued, isFound: run.takeReplayed() }
}

/** Lets the service download the list. */
async function submitUrl(run: Run, url: string): Promise<Submitted> {
  const { context, client, flags, signal, takeReplayed } = run
  const options = toFileOptions(flags)
  const create = (idempotencyKey: string) => client.url(url, { ...options, idempotencyKey, signal })
  const parts = [url, flags.sandbox ?? false, options]
  const queued = await create(toKey(context, flags, parts))
  if (!takeReplayed()) return { queued, isFound: false }
  const { status } = await client.jobs.get(queued.job_id, { signal })
  if (status !== 'completed') return { queued, isFound: true }
  return { queued: await create(context.random.token(KEY_LENGTH)), isFound: false }
}

/** Returns the idempotency key of a list: the same for the same list and options. */
const toKey = ({ random }: CliContext, { fresh = false }: RemoteFlags, parts: unknown) =>
  fresh
    ? random.token(KEY_LENGTH)
    : createHash('sha256').update(JSON.stringify(parts)).digest('hex')

/** Returns the fields of the request that say how the list is read. */
function toFileOptions(flags: RemoteFlags) {
  const { column, sheet, encoding, header, allAddresses, keepExternal, externalDate } = flags
  return omitUndefined({
    column,
    sheet,
    encoding,
    header: header === false ? header : undefined,
    all_addresses: allAddresses,
    keep_external: keepExternal,
    external_date: externalDate,
    metadata: parseMetadataFlags(flags.metadata),
  })
}

/** Uploads the list, or finds the job of an earlier upload. */
async function upload({ context, client, flags, signal }: Run, list: string): Promise<QueuedFile> {
  const options = toFileOptions(flags)
  const { path, digest, filename, isCopy } = await findInput(context, flags, list)
  const parts = [digest, filename, flags.sandbox ?? false, options]
  const idempotencyKey = toKey(context, flags, parts)
  try {
    const blob = await openAsBlob(path)
    return await client.file(blob, { ...options, filename, idempotencyKey, signal })
  } finally {
    if (isCopy) await rm(path, { force: true })
  }
}

/** Characters of a random idempotency key: 165 bits. */
const KEY_LENGTH = 32

type Input = {
  readonly path: string
  /** SHA-256 of the content. */
  readonly digest: string
  readonly filename: string
  /** Whether the file is a copy of stdin or of a URL. */
  readonly isCopy: boolean
}

/**
 * Returns the file to upload. Stdin and lists at a URL or in a bucket are copied to the data
 * directory first.
 */
async function findInput(context: CliContext, flags: RemoteFlags, list: string): Promise<Input> {
  const config = readConfig(context, flags)
  if (isUrl(list)) {
    const copy = await downloadList(context, config, list)
    return { ...copy, filename: nameOfUrl(list), isCopy: true }
  }
  const filename = list === '-' ? STDIN_NAME : basename(list)
  return { ...(await openInput(context, list, config.dataDir)), filename }
}

/** The name that the service shows for a list from stdin. */
const STDIN_NAME = 'stdin.csv'

function submittedText({
  job_id,
  total_emails,
  column,
  duplicates,
  ...queued
}: QueuedFile): string {
  const what =
    column === null ? `column number ${queued.column_number}` : `column ${sanitizeText(column)}`
  const encoding = queued.encoding === 'utf-8' ? '' : `, read as ${queued.encoding}`
  const twice = duplicates === 0 ? '' : `; ${pluralize(duplicates, 'duplicate')} verified once`
  return `Submitted as ${job_id}: ${pluralize(total_emails, 'row')}, addresses in ${what}${encoding}${twice}.`
}

const foundText = ({ job_id, total_emails }: QueuedFile) =>
  `This list was submitted before, as ${job_id}: ${pluralize(total_emails, 'row')}. To submit it again, add --fresh.`

/** Waits until the job has ended. Throws EvError if it was cancelled or failed. */
async function waitForResults(run: Run, jobId: string): Promise<Job> {
  const { context, client, flags, live, signal } = run
  const progress = createServiceProgress(context, live)
  const onProgress = (job: Job) => {
    if (flags.quiet) return
    const { rate_per_second: rate, seconds_left: left, status_detail: wait } = job
    const leftMs = left == null ? null : left * SECOND
    progress.show(countsOf(job), { rate: rate ?? 0, leftMs }, wait ?? null)
  }
  try {
    const job = await client.waitForJob(jobId, { signal, onProgress })
    if (job.status === 'completed') return job
    const what = job.status === 'failed' ? 'failed' : 'was cancelled'
    throw new EvError(
      'io',
      `Job ${jobId} ${what}: ${doneText(job)} rows are finished. To continue it, run "ev jobs resume ${jobId}" with the same --url, then the same command again. To upload the list again, add --fresh.`,
    )
  } finally {
    progress.end()
  }
}

const doneText = ({ processed_emails: done, total_emails: total }: Job) =>
  `${formatNumber(done)} of ${formatNumber(total)}`

const countsOf = ({ total_emails: total, processed_emails: done, data }: Job) => ({
  total,
  done,
  deliverable: data.classes.deliverable,
  risky: data.classes.risky,
  undeliverable: data.classes.undeliverable,
  unknown: data.classes.unknown,
})

type Output = { readonly files: readonly OutputFile[]; readonly format: Format }

/** Writes the results. A file gets its name when all are complete. */
async function download(run: Run, jobId: string, { files, format }: Output): Promise<void> {
  const sinks: OutputSink[] = []
  try {
    for (const { path, classes } of files) {
      const plain = await openSink(run.context, path)
      // A workbook arrives as one.
      const sink = await encodeSink(plain, { path, format: undefined, encode: null })
      sinks.push(sink)
      await downloadTo(sink, run, jobId, { format, classes })
      await sink.close()
    }
    await publishAll(sinks)
  } catch (error) {
    for (const sink of sinks) await sink.discard()
    throw error
  }
}

async function downloadTo(
  sink: OutputSink,
  { client, flags, signal }: Run,
  jobId: string,
  { format, classes }: { readonly format: Format; readonly classes: readonly Class[] },
): Promise<void> {
  const { action, deduplicate, raw, vocabulary } = flags
  const options = omitUndefined({
    format,
    filter: classes.length === CLASSES.length ? undefined : classes,
    action: action === undefined ? undefined : parseActions(action),
    deduplicate,
    raw,
    vocabulary,
    signal,
  })
  const stream = await client.jobs.download(jobId, options)
  for await (const chunk of stream) await sink.write(chunk)
}

type SummaryFacts = {
  readonly files: readonly OutputFile[]
  readonly sandbox: boolean
}

/** Formats the results: counts, reasons, files and the bounces to expect. */
function summaryText(
  job: Job,
  { actions, projection, reasons }: Breakdown['data'],
  { tookMs, files, sandbox }: SummaryFacts & { readonly tookMs: number },
): string {
  const counts = countsOf(job)
  const paths = files.map(({ path }) => path).filter(path => path !== '-')
  const written = paths.length === 0 ? '' : `, written to ${paths.join(', ')}`
  const projected = {
    actions,
    before: toProjection(projection.before),
    after: toProjection(projection.after),
    reports: projection.reports,
  }
  return [
    '',
    ...(sandbox ? ['  SIMULATED results'] : []),
    ...CLASSES.flatMap(klass => classLines(counts, klass, { reasons: reasonsByClass(reasons) })),
    '',
    `${pluralize(counts.total, 'row')} in ${formatDuration(tookMs)}${written}.`,
    ...projectionLines(projected, projection.complaint_rate),
  ].join('\n')
}

const toProjection = (part: Breakdown['data']['projection']['before']): BounceProjection => ({
  addresses: part.addresses,
  rate: part.bounce_rate,
  rateMin: part.bounce_rate_min,
  rateMax: part.bounce_rate_max,
})

function reasonsByClass(reasons: Breakdown['data']['reasons']) {
  const ofClass = (klass: Class) =>
    new Map(reasons.filter(one => one.class === klass).map(({ reason, count }) => [reason, count]))
  return {
    deliverable: ofClass('deliverable'),
    risky: ofClass('risky'),
    undeliverable: ofClass('undeliverable'),
    unknown: ofClass('unknown'),
  }
}

/** Returns the summary as JSON. The service does not count the rows of a download. */
function summaryObject(
  job: Job,
  { actions, projection, reasons }: Breakdown['data'],
  {
    output,
    files,
    queued,
    sandbox,
  }: SummaryFacts & { readonly output: string; readonly queued: QueuedFile },
) {
  const { total, done: _, ...classes } = countsOf(job)
  const byClass = reasonsByClass(reasons)
  return {
    job_id: job.job_id,
    output,
    files: files.map(({ path }) => ({ path })),
    ...(sandbox ? { sandbox: true } : {}),
    total,
    duplicates: queued.duplicates,
    ...classes,
    no_address: job.data.no_address,
    reasons: Object.fromEntries(CLASSES.map(klass => [klass, Object.fromEntries(byClass[klass])])),
    actions,
    projection,
  }
}
