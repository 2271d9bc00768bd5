//! What librarians review: export and, later, import of ratings.
