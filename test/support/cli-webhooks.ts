import { emptyFolder, type Ran, runEv } from './cli.ts'

/** Runs `ev` in a folder, without network access. */
export const ev = (home: string, ...args: string[]): Promise<Ran> =>
  runEv([...args, '--data-dir', 'data'], { home, offline: true })

/** Returns the JSON that a command prints; throws with its error if it prints none. */
export async function read(home: string, ...args: string[]) {
  const { stdout, stderr } = await ev(home, ...args, '--json')
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Allows connections to this machine. */
export const HERE = ['--webhook-allow-ranges', '127.0.0.1'] as const

/** Creates a folder whose database has accounts with these names. */
export async function homeWith(...names: string[]): Promise<string> {
  const home = emptyFolder()
  for (const name of names) await ev(home, 'accounts', 'create', '--name', name)
  return home
}

/** Creates a key and returns its secret. */
export const newKey = async (home: string, ...args: string[]): Promise<string> =>
  (await read(home, 'keys', 'create', '--name', 'CI', ...args)).key
