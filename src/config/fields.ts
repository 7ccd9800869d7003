import { Expected, word } from './values.ts'

type Reader<T = unknown> = ((text: string) => T) & { readonly takesNull?: true }

/** What the fields of an object are when all are read. */
export type FieldValues<Readers> = {
  readonly [K in keyof Readers]: Readers[K] extends Reader<infer T> ? T : never
}

/** The same, where null may stand as well. */
export const orNull = <T>(read: (text: string) => T): Reader<T | null> =>
  Object.assign((text: string) => read(text), { takesNull: true as const })

/**
 * Reads an object of the config file. A key has the name of its flag (`mail-from`); `mailFrom` means the same.
 * Throws Expected, which says what stands there and what it takes.
 */
export function readFields<R extends Readonly<Record<string, Reader>>>(
  given: unknown,
  readers: R,
): Partial<FieldValues<R>> {
  const known = Object.keys(readers)
  const read = Object.entries(objectOf(given)).map(([written, value]) => {
    const key = known.find(one => asInFile(one) === asInFile(written))
    const reader = readers[key ?? '']
    if (key === undefined || reader === undefined) {
      const names = known.map(asInFile).join(', ')
      throw new Expected(`nothing of the name "${written}", only ${names}`)
    }
    try {
      return [key, value === null && reader.takesNull ? null : reader(textOf(value))]
    } catch (error) {
      if (!(error instanceof Expected)) throw error
      throw new Expected(`in "${written}" ${error.message}, not ${shown(value, key === 'proxy')}`)
    }
  })
  return Object.fromEntries(read)
}

/** Reads an object of the config file whose keys are names of ours, such as operators. Throws Expected. */
export function readByName<T>(
  given: unknown = {},
  readOne: (said: unknown) => T,
): Readonly<Record<string, T>> {
  const all = Object.entries(objectOf(given)).map(([name, said]) => {
    try {
      return [word(name), Object.freeze(readOne(said))] as const
    } catch (error) {
      if (!(error instanceof Expected)) throw error
      throw new Expected(`for "${name}" ${error.message}`)
    }
  })
  return Object.freeze(Object.fromEntries(all))
}

/**
 * Of a URL what stands before the host is kept back: it may be a password. Of one of PostgreSQL everything is, as it may
 * stand anywhere in one that is faulty.
 */
export const shown = (value: unknown, isUrl: boolean): string =>
  JSON.stringify(
    isUrl && typeof value === 'string'
      ? value.replace(/^(postgres(?:ql)?:).*$/is, '$1…').replace(/^.*@/s, '…@')
      : value,
  )

function objectOf(given: unknown): Record<string, unknown> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Expected('an object such as {"name": …}')
  }
  return given as Record<string, unknown>
}

/** A file may hold numbers, booleans and lists of them as JSON has them. */
export function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(',')
  if (value === null || typeof value === 'object') throw new Expected('a text, a number or a list')
  return String(value)
}

/** `smtpPort`, `--smtp-port` and `EV_SMTP_PORT` all mean `smtp-port`. */
export const asInFile = (key: string) =>
  key
    .replace(/^(--|EV_)/, '')
    .replace(/Ms$/, '')
    .replace(/[a-z](?=[A-Z])/g, '$&-')
    .replaceAll('_', '-')
    .toLowerCase()
