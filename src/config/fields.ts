import { Expected, word } from './values.ts'

type Reader<T = unknown> = ((text: string) => T) & { readonly takesNull?: true }

/** Types of the values that a set of readers returns. */
export type FieldValues<Readers> = {
  readonly [K in keyof Readers]: Readers[K] extends Reader<infer T> ? T : never
}

/** Makes a reader accept null. */
export const orNull = <T>(read: (text: string) => T): Reader<T | null> =>
  Object.assign((text: string) => read(text), { takesNull: true as const })

/**
 * Reads an object of the config file. Keys are named like flags (`mail-from`); `mailFrom` is
 * accepted too. Throws Expected, which states the input and the allowed values.
 */
export function readFields<R extends Readonly<Record<string, Reader>>>(
  input: unknown,
  readers: R,
): Partial<FieldValues<R>> {
  const known = Object.keys(readers)
  const fields = Object.entries(toObject(input)).map(([written, value]) => {
    const key = known.find(one => normalizeKey(one) === normalizeKey(written))
    const reader = readers[key ?? '']
    if (key === undefined || reader === undefined) {
      const names = known.map(normalizeKey).join(', ')
      throw new Expected(`no "${written}", only ${names}`)
    }
    try {
      return [key, value === null && reader.takesNull ? null : reader(toText(value))]
    } catch (error) {
      if (!(error instanceof Expected)) throw error
      throw new Expected(
        `in "${written}" ${error.message}, not ${formatValue(value, key === 'proxy')}`,
      )
    }
  })
  return Object.fromEntries(fields)
}

/**
 * Reads an object of the config file with one entry per name, as for operators. Throws Expected.
 */
export function readByName<T>(
  input: unknown = {},
  readOne: (value: unknown) => T,
): Readonly<Record<string, T>> {
  const all = Object.entries(toObject(input)).map(([name, value]) => {
    try {
      return [word(name), Object.freeze(readOne(value))] as const
    } catch (error) {
      if (!(error instanceof Expected)) throw error
      throw new Expected(`for "${name}" ${error.message}`)
    }
  })
  return Object.freeze(Object.fromEntries(all))
}

/**
 * Formats a value for a message. Hides the user part of a URL, as it may be a password, and all of
 * a PostgreSQL URL, as the password may be anywhere in an invalid one.
 */
export const formatValue = (value: unknown, isUrl: boolean): string =>
  JSON.stringify(
    isUrl && typeof value === 'string'
      ? value.replace(/^(postgres(?:ql)?:).*$/is, '$1…').replace(/^.*@/s, '…@')
      : value,
  )

function toObject(input: unknown): Record<string, unknown> {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new Expected('an object such as {"name": …}')
  }
  return input as Record<string, unknown>
}

/** Converts a JSON value of the config file (string, number, boolean or list) to setting text. */
export function toText(value: unknown): string {
  if (Array.isArray(value)) return value.map(toText).join(',')
  if (value === null || typeof value === 'object')
    throw new Expected('a string, a number or a list')
  return String(value)
}

/** Normalizes a key: `smtpPort`, `--smtp-port` and `EV_SMTP_PORT` become `smtp-port`. */
export const normalizeKey = (key: string) =>
  key
    .replace(/^(--|EV_)/, '')
    .replace(/Ms$/, '')
    .replace(/[a-z](?=[A-Z])/g, '$&-')
    .replaceAll('_', '-')
    .toLowerCase()
