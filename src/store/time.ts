/** SQL for the time of the database, in milliseconds, as a statement begins. */
export const databaseTime = 'CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)'
