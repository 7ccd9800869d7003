/** The result of a check, with a fix (`todo`) unless it passed. */
export type Finding = {
  readonly state: 'ok' | 'warn' | 'fail'
  readonly says: string
  readonly todo: string | null
}

export const ok = (says: string): Finding => ({ state: 'ok', says, todo: null })
export const warn = (says: string, todo: string): Finding => ({ state: 'warn', says, todo })
export const fail = (says: string, todo: string): Finding => ({ state: 'fail', says, todo })
