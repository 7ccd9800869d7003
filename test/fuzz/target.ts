import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** A function of foreign bytes that throws if the program misbehaves, and what to start from. */
export type FuzzTarget = {
  /** Throws, or rejects, if a rule does not hold for these bytes. */
  readonly fuzz: (bytes: Buffer) => void | Promise<void>
  /** Typical inputs, made from fixtures or written by the program. */
  readonly seeds: () => Seeds | AsyncIterable<string | Uint8Array>
  /** Longest input that is tried, in bytes. */
  readonly lengthMax: number
}

type Seeds = Iterable<string | Uint8Array>

const FOLDER = join(import.meta.dirname, 'targets')
const FIXTURES = join(import.meta.dirname, '../../fixtures')
/** One folder for each target: `corpus.txt`, and a file for each input that once failed. */
export const FUZZ_FIXTURES = join(FIXTURES, 'fuzz')
const CORPUS_FILE = 'corpus.txt'

export const TARGET_NAMES: readonly string[] = readdirSync(FOLDER)
  .map(file => basename(file, '.ts'))
  .toSorted()

export const targetPath = (name: string) => join(FOLDER, `${name}.ts`)

export async function loadTarget(name: string): Promise<FuzzTarget> {
  const { target } = (await import(targetPath(name))) as { target: FuzzTarget }
  return target
}

/** The inputs that reach code which the seeds do not; base64, one per line. */
export const readCorpus = (name: string): Buffer[] =>
  readFileSync(corpusPath(name), 'utf8')
    .split('\n')
    .filter(line => line !== '')
    .map(line => Buffer.from(line, 'base64'))

/** The inputs that once failed. */
export const readFindings = (name: string): Buffer[] =>
  readdirSync(join(FUZZ_FIXTURES, name))
    .filter(file => file !== CORPUS_FILE)
    .map(file => readFileSync(join(FUZZ_FIXTURES, name, file)))

export const corpusPath = (name: string) => join(FUZZ_FIXTURES, name, CORPUS_FILE)

/** Lines of a fixture without comments and empty ones, as cells. */
export const readCells = (file: string): string[][] =>
  readFileSync(join(FIXTURES, file), 'utf8')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => line.split('\t'))

export const readFixture = (file: string): Buffer => readFileSync(join(FIXTURES, file))

/** Lengths of chunks: single bytes, common ones, and more than a buffer of 64 bytes. */
const CHUNK_LENGTHS = [1, 1, 2, 3, 5, 16, 64, 1_000]

/** Splits bytes into chunks of lengths that the bytes determine, so that a failure repeats. */
export const splitBytes = (bytes: Buffer): Buffer[] =>
  chunkEnds(bytes.length, at => bytes[at] ?? 0).map((end, i, ends) =>
    bytes.subarray(ends[i - 1] ?? 0, end),
  )

/** Splits a text likewise; a chunk may end within a surrogate pair. */
export const splitText = (text: string): string[] =>
  chunkEnds(text.length, at => text.charCodeAt(at)).map((end, i, ends) =>
    text.slice(ends[i - 1] ?? 0, end),
  )

function chunkEnds(length: number, unitAt: (at: number) => number): number[] {
  const ends: number[] = []
  let state = length
  for (let at = 0; at < length; ) {
    // The generator of numbers of "Numerical Recipes", which the input moves on.
    state = (Math.imul(state ^ unitAt(at), 1_664_525) + 1_013_904_223) >>> 0
    at = Math.min(length, at + (CHUNK_LENGTHS[state >>> 29] ?? 1))
    ends.push(at)
  }
  return ends
}

/** Yields chunks as a stream does. */
export async function* toStream(chunks: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield chunk
}

/** The seeds of a target, as bytes. */
export async function readSeeds({ seeds }: FuzzTarget): Promise<Buffer[]> {
  const all: Buffer[] = []
  for await (const seed of seeds()) all.push(Buffer.from(seed))
  return all
}
