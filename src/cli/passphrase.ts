import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { EvError, errorMessage } from '../platform/error.ts'
import { type CliContext, inCwd } from './context.ts'

/** The variable with the passphrase of backups. */
const VARIABLE = 'EV_BACKUP_PASSPHRASE'

/** Shorter passphrases can be guessed by anyone who has the backup. */
const LENGTH_MIN = 12

export type PassphraseFlags = { readonly passphraseFile?: string }

/**
 * Returns the passphrase of a backup from `--passphrase-file`, else from the environment; null if
 * neither is set. It is never an argument, which other users could see. Throws EvError.
 */
export function findPassphrase(
  context: CliContext,
  { passphraseFile }: PassphraseFlags,
): string | null {
  if (passphraseFile !== undefined) {
    const text = readSecretFile(context, '--passphrase-file', passphraseFile)
    const passphrase = text.replace(/\r?\n$/, '')
    if (passphrase !== '') return passphrase
    throw new EvError('usage', `--passphrase-file is ${passphraseFile}, which is empty.`)
  }
  return context.env[VARIABLE] || null
}

/** Reads the file of a flag. Throws EvError('no_input'). */
export function readSecretFile(context: CliContext, flag: string, file: string): string {
  try {
    return readFileSync(inCwd(context, file), 'utf8')
  } catch (cause) {
    throw new EvError(
      'no_input',
      `${flag} is ${file}, which cannot be read: ${errorMessage(cause)}.`,
      { cause },
    )
  }
}

/** Throws EvError('usage') for a passphrase that is too short for a new backup. */
export function checkPassphrase(passphrase: string): string {
  if (passphrase.length >= LENGTH_MIN) return passphrase
  throw new EvError(
    'usage',
    `The passphrase has ${passphrase.length} characters; it takes at least ${LENGTH_MIN}. To create one: head -c 32 /dev/urandom | base64`,
  )
}

/**
 * Asks for a passphrase on the terminal, without showing it; a new one twice. Returns null without
 * a terminal. Throws EvError if it is not given.
 */
export async function askPassphrase(
  context: Pick<CliContext, 'stdin' | 'stderr'>,
  { isNew }: { readonly isNew: boolean },
): Promise<string | null> {
  const { stdin, stderr } = context
  if (stdin.isTTY !== true || stderr.isTTY !== true) return null
  const passphrase = await askHidden(context, 'Passphrase: ')
  if (isNew && (await askHidden(context, 'Repeat the passphrase: ')) !== passphrase) {
    throw new EvError('usage', 'The two passphrases are different. Nothing was written.')
  }
  return passphrase
}

/** Reads a line that the terminal does not show. */
async function askHidden(
  { stdin, stderr }: Pick<CliContext, 'stdin' | 'stderr'>,
  question: string,
): Promise<string> {
  const hidden = new Writable({ write: (_, __, done) => done() })
  stderr.write(question)
  const terminal = createInterface({ input: stdin, output: hidden, terminal: true })
  try {
    return await new Promise<string>((resolve, reject) => {
      const stop = () => reject(new EvError('interrupted', 'Interrupted. Nothing was changed.'))
      terminal.once('SIGINT', stop)
      terminal.once('close', stop)
      terminal.once('line', resolve)
    })
  } finally {
    terminal.removeAllListeners('close')
    terminal.close()
    stderr.write('\n')
  }
}
