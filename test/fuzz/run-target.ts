import { spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { loadTarget, readCorpus, readFindings, readSeeds, targetPath } from './target.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The libraries of Debian 13, unpacked by tools/install-fuzz-libraries.sh. */
const LIBRARIES = join(process.env.EV_FUZZ_LIBRARIES ?? '/opt/ev-fuzz', 'usr/lib')
/** The native part of Jazzer.js 4.0.0 is linked against this version. */
const GLIBC_MIN = [2, 38] as const
/** Packages that read foreign bytes for ev, and are instrumented too. */
const PACKAGES = [
  ...['@fastify/busboy', 'csv-parse', 'dns-packet', 'postal-mime', 'saxes', 'socks', 'yauzl'],
].map(name => `/node_modules/${name}/`)
/** Limit of an input: a hundred times what the slowest takes, as other programs use the machine. */
const INPUT_TIMEOUT_MS = 10_000
/** Limit of the process; inputs are at most 64 KiB. */
const MEMORY_MAX_MB = 1_024

export type FuzzRun = {
  readonly seconds: number
  /** Seed of the random numbers; 0 chooses one. */
  readonly seed: number
}

export type Finding = {
  /** `crash`, also for a rule that does not hold; `timeout` or `oom` for a limit. */
  readonly kind: string
  /** The input that failed; null if the process failed without one. */
  readonly input: Buffer | null
  readonly output: string
}

export type FuzzResult = {
  readonly executions: number
  /** Branches that were reached. */
  readonly edges: number
  readonly finding: Finding | null
  /** Inputs that reach new code, which the run found. */
  readonly found: readonly Buffer[]
}

/**
 * Returns the command that starts Node so that the native part of Jazzer.js loads; null, with a
 * reason, if this machine cannot run it.
 */
export function findNode(): readonly string[] | { readonly reason: string } {
  if (process.platform !== 'linux') return [process.execPath]
  const { header } = process.report.getReport() as {
    header: { glibcVersionRuntime?: string }
  }
  const [major = 0, minor = 0] = (header.glibcVersionRuntime ?? '').split('.').map(Number)
  if (major > GLIBC_MIN[0] || (major === GLIBC_MIN[0] && minor >= GLIBC_MIN[1])) {
    return [process.execPath]
  }
  const folder = existsSync(LIBRARIES)
    ? readdirSync(LIBRARIES).find(name => name.endsWith('-linux-gnu'))
    : undefined
  const loader =
    folder && readdirSync(join(LIBRARIES, folder)).find(name => name.startsWith('ld-linux'))
  if (folder === undefined || loader === undefined) {
    return {
      reason:
        `Jazzer.js needs glibc ${GLIBC_MIN.join('.')}, and this machine has ` +
        `${header.glibcVersionRuntime ?? 'none'}: run sudo bash tools/install-fuzz-libraries.sh`,
    }
  }
  const path = join(LIBRARIES, folder)
  return [join(path, loader), '--library-path', path, process.execPath]
}

/** Fuzzes one target in a process of its own. */
export async function runTarget(name: string, run: FuzzRun): Promise<FuzzResult> {
  const { lengthMax } = await loadTarget(name)
  return await withInputs(name, [], async folder => {
    const { code, output } = await startJazzer(
      name,
      [join(folder, 'found'), join(folder, 'seeds')],
      [
        `-max_total_time=${run.seconds}`,
        `-seed=${run.seed}`,
        `-max_len=${lengthMax}`,
        `-rss_limit_mb=${MEMORY_MAX_MB}`,
        `-artifact_prefix=${folder}/`,
        '-print_final_stats=1',
      ],
      folder,
    )
    const failed = readdirSync(folder).find(file => /^(crash|timeout|oom)-/.test(file))
    const input = failed === undefined ? null : readFileSync(join(folder, failed))
    const kind = failed?.split('-')[0] ?? 'crash'
    return {
      executions: lastNumber(output, /stat::number_of_executed_units:\s*(\d+)/g),
      edges: lastNumber(output, / cov: (\d+)/g),
      finding: code === 0 ? null : { kind, input, output: output.slice(-OUTPUT_LENGTH) },
      found: readFolder(join(folder, 'found')),
    }
  })
}

/** Length of the end of the output that tells why an input failed. */
const OUTPUT_LENGTH = 6_000

/** Returns those inputs that reach code which neither the seeds nor a shorter input reaches. */
export async function selectInputs(name: string, inputs: readonly Buffer[]): Promise<Buffer[]> {
  return await withInputs(name, inputs, async folder => {
    const path = join(folder, 'selected')
    writeFileSync(path, '')
    const { code, output } = await startJazzer(name, [join(folder, 'seeds')], ['-runs=0'], folder, {
      EV_FUZZ_SELECTED: path,
    })
    if (code !== 0) throw new Error(output.slice(-OUTPUT_LENGTH))
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter(line => line !== '')
      .map(line => Buffer.from(line, 'base64'))
  })
}

/** Runs with a folder that has the seeds, the kept inputs and `more` in `seeds`. */
async function withInputs<T>(
  name: string,
  more: readonly Buffer[],
  run: (folder: string) => Promise<T>,
): Promise<T> {
  const seeds = await readSeeds(await loadTarget(name))
  const folder = mkdtempSync(join(tmpdir(), 'ev-fuzz-'))
  try {
    for (const sub of ['found', 'seeds']) mkdirSync(join(folder, sub))
    const kept = [...readCorpus(name), ...readFindings(name)]
    for (const [i, input] of [...seeds, ...kept, ...more].entries()) {
      writeFileSync(join(folder, 'seeds', String(i)), input)
    }
    return await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const readFolder = (folder: string) =>
  readdirSync(folder).map(file => readFileSync(join(folder, file)))

async function startJazzer(
  name: string,
  folders: readonly string[],
  libFuzzerOptions: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const node = findNode()
  if ('reason' in node) throw new Error(node.reason)
  const { fuzz } = await loadTarget(name)
  const [program = '', ...first] = node
  const jazzer = join(dirname(createRequire(import.meta.url).resolve('@jazzer.js/core')), 'cli.js')
  // Not a pipe: libFuzzer writes to it directly, and Node makes pipes drop what they cannot take.
  const path = join(folder, 'output')
  const log = openSync(path, 'w')
  const child = spawn(
    program,
    [
      ...first,
      '--disable-warning=ExperimentalWarning',
      `--import=${join(import.meta.dirname, 'jazzer/strip-types.mjs')}`,
      jazzer,
      join(import.meta.dirname, 'jazzer/entry.mjs'),
      ...folders,
      ...(fuzz.constructor.name === 'AsyncFunction' ? [] : ['--sync']),
      ...[`${ROOT}/src/`, ...PACKAGES].flatMap(part => ['-i', part]),
      // Without one, node_modules would be left out.
      '--excludes=/test/',
      // They are for programs that run commands, open files or change prototypes.
      '--disableBugDetectors=.*',
      `--timeout=${INPUT_TIMEOUT_MS}`,
      '--',
      ...libFuzzerOptions,
    ],
    {
      cwd: ROOT,
      env: { ...process.env, ...env, EV_FUZZ_TARGET: targetPath(name) },
      stdio: ['ignore', log, log],
    },
  )
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  closeSync(log)
  return { code, output: readFileSync(path, 'utf8') }
}

function lastNumber(text: string, pattern: RegExp): number {
  const [, digits] = [...text.matchAll(pattern)].at(-1) ?? []
  return Number(digits ?? 0)
}
