import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { parse } from 'csv-parse/sync'
import { type Address, addressKey, isFault, parseAddress } from '../../engine/address/address.ts'
import type { ExternalReason } from '../../engine/verdict/external.ts'
import { CLASSES, type Class } from '../../engine/verdict/verdict.ts'
import { findExternalColumns, readExternal } from '../../formats/vocabulary/read-external.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'

// Another tool: a command that reads addresses from stdin, one per line, and writes its verdicts as
// CSV or as one JSON object per line; or a file that the tool has written before.

/** A tool by its name, with a command or a file. */
export type ToolSource =
  | { readonly name: string; readonly command: string }
  | { readonly name: string; readonly file: string }

/** Classes by the key of the address. */
export type Verdicts = ReadonlyMap<string, Class>

/** Parses the value of `--tool` or `--results`, `name=command` or `name=file`. */
export function parseTool(flag: '--tool' | '--results', value: string): ToolSource {
  const [, name, rest] = /^([\w.@/ -]{1,40})=(.+)$/s.exec(value) ?? []
  if (name === undefined || rest === undefined) {
    const form = flag === '--tool' ? 'name=command' : 'name=file'
    const excerpt = sanitizeText(value, 40)
    throw new EvError('usage', `${flag} is "${excerpt}"; it takes ${form}, with a short name.`)
  }
  return flag === '--tool' ? { name, command: rest } : { name, file: rest }
}

/** Output of a tool, which is held in memory: 100,000 verdicts have about 20 MB. */
const OUTPUT_LENGTH_MAX = 200_000_000

/** Runs a tool on addresses, or reads its file. Throws EvError if it fails or says nothing. */
export async function runTool(
  source: ToolSource,
  addresses: readonly string[],
  cwd: string,
): Promise<Verdicts> {
  const output =
    'file' in source ? await readResults(source) : await runCommand(source, addresses, cwd)
  return parseVerdicts(source.name, output)
}

async function readResults({ name, file }: { readonly name: string; readonly file: string }) {
  return readFile(file, 'utf8').catch(error => {
    throw new EvError(
      'no_input',
      `The results of ${name}, ${file}, cannot be read: ${errorMessage(error)}.`,
    )
  })
}

/** The command is that of the user, and runs in their shell. */
async function runCommand(
  { name, command }: { readonly name: string; readonly command: string },
  addresses: readonly string[],
  cwd: string,
): Promise<string> {
  const child = spawn(command, { shell: true, cwd, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  // A tool that reads no more has ended, and its code or its output says why.
  child.stdin.on('error', () => {})
  child.stdin.end(addresses.map(address => `${address}\n`).join(''))
  const [output, code] = await Promise.all([text(child.stdout), ended])
  if (code !== 0) throw new EvError('bad_input', `The command of ${name} ended with code ${code}.`)
  if (output.length <= OUTPUT_LENGTH_MAX) return output
  throw new EvError(
    'bad_input',
    `The command of ${name} wrote more than 200 MB. It must write one line per address.`,
  )
}

const CLASS_BY_REASON: Readonly<Record<ExternalReason, Class>> = {
  external_deliverable: 'deliverable',
  external_risky: 'risky',
  external_do_not_mail: 'risky',
  external_undeliverable: 'undeliverable',
  external_unknown: 'unknown',
}

/** Names of the column of the address in outputs of tools. */
const ADDRESS_NAMES = ['email', 'address', 'input', 'email address', 'email_address']

/** Reads CSV with a header, or JSON objects, one per line. */
function parseVerdicts(name: string, output: string): Verdicts {
  const { header, rows } = output.trimStart().startsWith('{')
    ? readJsonLines(name, output)
    : readCsv(name, output)
  const names = header.map(one => one.trim().toLowerCase())
  const address = names.findIndex(one => ADDRESS_NAMES.includes(one))
  const plain = names.indexOf('class')
  const external = findExternalColumns({ header })
  if (address === -1 || (plain === -1 && external === null)) throw unreadable(name, header)
  const verdicts = new Map<string, Class>()
  for (const cells of rows) {
    const parsed = parseAddress((cells[address] ?? '').trim())
    const found = external === null ? null : readExternal(external, cells)
    const klass =
      found === null
        ? CLASSES.find(one => one === cells[plain]?.trim().toLowerCase())
        : CLASS_BY_REASON[found.reason]
    if (!isFault(parsed) && klass !== undefined) verdicts.set(toMatchKey(parsed), klass)
  }
  if (verdicts.size === 0) throw unreadable(name, header)
  return verdicts
}

/** Returns the key by which an address of a list is found in the output of a tool, in any case. */
export const toMatchKey = (address: Address): string => addressKey(address).toLowerCase()

const unreadable = (name: string, header: readonly string[]) =>
  new EvError(
    'bad_input',
    `The output of ${name} has no verdict that can be read; its columns are ${sanitizeText(header.join(', '), 200)}. It takes a column email, and either a column class with ${CLASSES.join(', ')}, or the columns of ZeroBounce, NeverBounce, Kickbox, Reacher or ev.`,
  )

type Rows = { readonly header: readonly string[]; readonly rows: readonly (readonly string[])[] }

function readCsv(name: string, output: string): Rows {
  try {
    const [header = [], ...rows] = parse(output, {
      bom: true,
      relax_column_count: true,
    }) as string[][]
    return { header, rows }
  } catch (error) {
    throw new EvError('bad_input', `The output of ${name} is no CSV: ${errorMessage(error)}.`)
  }
}

function readJsonLines(name: string, output: string): Rows {
  const objects = output
    .split('\n')
    .filter(line => line.trim() !== '')
    .map((line, n) => parseLine(name, line, n + 1))
  const header = [...new Set(objects.flatMap(object => Object.keys(object)))]
  const rows = objects.map(object => header.map(key => toCell(object[key])))
  return { header, rows }
}

function parseLine(name: string, line: string, number: number): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch (error) {
    throw new EvError(
      'bad_input',
      `Line ${number} of the output of ${name} is no JSON: ${errorMessage(error)}.`,
    )
  }
}

const toCell = (value: unknown): string =>
  value == null || typeof value === 'object' ? '' : String(value)
