/** Whether the URL names a PostgreSQL database, which several machines may share. */
export const isPostgresUrl = (url: string) => /^postgres(ql)?:/.test(url)

/** Returns the path in a `sqlite:` URL. */
export const fileOf = (url: string) => url.replace(/^sqlite:/, '')
