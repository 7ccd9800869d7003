import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Certified, certify, makeAuthority } from '../../../base/certificate.ts'
import { DAY } from '../../../base/clock.ts'
import { EvError, messageOf } from '../../../base/error.ts'
import type { Random } from '../../../base/random.ts'

/** The small authority that vouches for receivers on this machine. */
export type Authority = Certified & {
  /** Where its certificate is, for `--webhook-ca-file`. */
  readonly file: string
  /** Whether it was made just now, so that nobody can know it yet. */
  readonly isNew: boolean
}

type When = { readonly now: number; readonly random: Random }

/** The authority of the data directory; made where there is none, or none that holds long enough. */
export function keptAuthority(dataDir: string, { now, random }: When): Authority {
  const files = filesOf(dataDir)
  const kept = read(files)
  if (kept !== null && endOf(kept) - now > LEFT_MIN_MS) {
    return { ...kept, file: files.cert, isNew: false }
  }
  const made = makeAuthority({ name: NAME, now, days: DAYS, random })
  store(files, made)
  return { ...made, file: files.cert, isNew: true }
}

/** A certificate for this machine, made anew for each listener: nothing of it needs to be kept. */
export function certificateFor(
  authority: Authority,
  host: string,
  { now, random }: When,
): Certified {
  const names = [...new Set(['localhost', '127.0.0.1', '::1', host])]
  // From a day before, as an authority's: clocks differ.
  const span = { notBefore: now - DAY, notAfter: endOf(authority) }
  return certify(authority, { names, ...span, random })
}

const NAME = 'ev webhooks listen'
const DAYS = 365
/** A listener that is started now may run as long as this. */
const LEFT_MIN_MS = 30 * DAY

const endOf = ({ cert }: Certified) => Date.parse(new X509Certificate(cert).validTo)

type Files = { readonly dir: string; readonly cert: string; readonly key: string }

function filesOf(dataDir: string): Files {
  const dir = resolve(dataDir, 'webhook-listen')
  return { dir, cert: join(dir, 'authority.pem'), key: join(dir, 'authority.key') }
}

/** Null also for halves of two authorities, which two first listeners at the same moment may leave. */
function read({ cert, key }: Files): Certified | null {
  const texts = [cert, key].map(textOf)
  const [certText = null, keyText = null] = texts
  if (certText === null || keyText === null) return null
  try {
    const isPair = new X509Certificate(certText).checkPrivateKey(createPrivateKey(keyText))
    return isPair ? { cert: certText, key: keyText } : null
  } catch {
    return null
  }
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw unusable(file, error)
  }
}

/** Its key vouches for receivers to whoever believes it, so nobody else may read it. */
function store({ dir, cert, key }: Files, made: Certified): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    replace(key, made.key, 0o600)
    replace(cert, made.cert, 0o644)
  } catch (error) {
    throw unusable(dir, error)
  }
}

/** Whole, or not at all: it may be read meanwhile. */
function replace(file: string, text: string, mode: number): void {
  const partial = `${file}.${process.pid}.partial`
  writeFileSync(partial, text, { mode })
  renameSync(partial, file)
}

const unusable = (place: string, cause: unknown) =>
  new EvError(
    'io',
    `The certificates in ${place} cannot be kept: ${messageOf(cause)}. Correct its rights, or name another place with --data-dir.`,
    { cause },
  )
