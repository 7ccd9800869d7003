import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { REQUIRED } from './real-servers.ts'

const OFFICE = 'soffice'

/** Whether LibreOffice is installed. Tests that need it are skipped without it, unless required. */
export const hasOffice = spawnSync(OFFICE, ['--version']).error === undefined

if (!hasOffice && REQUIRED) throw new Error('soffice (libreoffice-calc-nogui) is missing')
if (!hasOffice)
  console.warn('No test in a spreadsheet: soffice (libreoffice-calc-nogui) is missing.')

/** Field separator, text delimiter, UTF-8, first line, detect dates, and evaluate formulas. */
export const EVALUATE = '--infilter=CSV:44,34,76,1,,0,false,true,false,false,false,-1,true'

/** Converts a file of a folder with headless LibreOffice, and returns the path of the result. */
export function convert(folder: string, name: string, format: string, ...filter: string[]): string {
  const profile = `-env:UserInstallation=file://${folder}/profile`
  const args = [profile, '--headless', ...filter, '--convert-to', format, '--outdir', folder, name]
  const { status, stderr } = spawnSync(OFFICE, args, { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return join(folder, `${name.replace(/\.\w+$/, '')}.${format}`)
}

/** Returns the formulas in a file of the format fods. */
export const formulasOf = (text: string): string[] =>
  [...text.matchAll(/table:formula="([^"]*)"/g)].map(([, formula]) => formula ?? '')
