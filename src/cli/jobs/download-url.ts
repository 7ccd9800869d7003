import { type Command, Option } from 'commander'
import type { Vocabulary } from '../../formats/vocabulary/names.ts'
import type { DeduplicateBy } from '../../jobs/import/import-counter.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import type { Format } from '../bulk/row-text.ts'
import type { CliContext } from '../context.ts'
import { type DataFlags, worksOnData } from '../data-command.ts'
import {
  checkVocabulary,
  deduplicateOption,
  OUTPUT_FORMATS,
  parseClasses,
  vocabularyOption,
} from '../flag-values.ts'
import { printJson, printMessage } from '../print.ts'
import { DATA_SETTINGS } from '../settings.ts'
import { openJobs } from './backend.ts'

export function addDownloadUrl(jobs: Command, context: CliContext): void {
  const downloadUrl = jobs
    .command('download-url')
    .description('print a download URL of the results that works for 24 hours without an API key')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .addOption(
      new Option('--format <format>', 'format of the file (default: csv)')
        .choices(OUTPUT_FORMATS)
        .default('csv'),
    )
    .option('--only <class,…>', 'only these classes: deliverable, risky, undeliverable, unknown')
    .addOption(deduplicateOption('include'))
    .addOption(vocabularyOption())
    .option('--raw', 'do not escape cells that spreadsheets would run as formulas')
    .option('--partial', 'print a URL even if the job is not finished')
    .option('--key <key>', 'ID of the API key that grants access (default: one of the account)')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev jobs download-url job_4kq2
  ev jobs download-url job_4kq2 --format xlsx --only deliverable,risky
  ev jobs download-url job_4kq2 --base-url https://ev.example.com

The base URL and the secret must be those of "ev serve".`,
    )
    .action((id: string, flags) => downloadUrlCommand(context, id, flags))
  worksOnData(downloadUrl, context, ['baseUrl', 'secret', 'secretFile', ...DATA_SETTINGS])
}

type DownloadUrlFlags = DataFlags & {
  readonly format: Format
  readonly only?: string
  readonly raw?: boolean
  readonly deduplicate?: DeduplicateBy
  readonly vocabulary?: Vocabulary
  readonly partial?: boolean
  readonly key?: string
}

async function downloadUrlCommand(
  context: CliContext,
  id: string,
  flags: DownloadUrlFlags,
): Promise<void> {
  const { format, only, raw, deduplicate, vocabulary, partial, key, json } = flags
  checkVocabulary(vocabulary, format)
  const file = omitUndefined({
    format,
    only: only === undefined ? undefined : parseClasses(only),
    raw,
    deduplicate,
    vocabulary,
    partial,
    keyId: key,
  })
  const backend = await openJobs(context, flags)
  const { url, expires_at, key_id, note } = await backend.downloadUrl(id, file)
  if (json) printJson(context, { url, expires_at, key_id })
  else {
    context.stdout.write(`${url}\n`)
    printMessage(context, 'note', note)
  }
}
